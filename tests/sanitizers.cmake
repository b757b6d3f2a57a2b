# What parses and decides once more under ASan and UBSan, and every night what runs threads under TSan. Each sanitizer has a build folder of
# its own, and a test makes it: so it compiles while the other tests wait.
option(RLOCK_SANITIZERS "Also build and run the unit, contract and fuzz tests under ASan and UBSan, and every night under TSan" OFF)
if(NOT RLOCK_SANITIZERS)
  return()
endif()

# Under a sanitizer gcc only guesses whether a variable is initialised.
set(sanitized "-g1 -fno-omit-frame-pointer -Wall -Wextra -Werror -Wno-restrict -Wno-maybe-uninitialized")

# sanitizer(NAME FLAGS [nightly] PROGRAM...): the tests NAME_PROGRAM, of a build with these flags.
function(sanitizer name flags)
  cmake_parse_arguments(arg "nightly" "" "" ${ARGN})
  set(programs ${arg_UNPARSED_ARGUMENTS})
  set(labels sanitizers)
  set(when)
  if(arg_nightly)
    set(when CONFIGURATIONS nightly)
    list(APPEND labels nightly)
  endif()
  set(folder ${CMAKE_BINARY_DIR}/${name})
  set(script "'${CMAKE_COMMAND}' -S '${CMAKE_SOURCE_DIR}' -B '${folder}' -G '${CMAKE_GENERATOR}' -DCMAKE_BUILD_TYPE=None \
-DRLOCK_STATIC=OFF -DCMAKE_UNITY_BUILD=${CMAKE_UNITY_BUILD} '-DCMAKE_CXX_FLAGS=${sanitized} ${flags}' && \
'${CMAKE_COMMAND}' --build '${folder}' --parallel ${processors} --target ${programs}")
  string(REPLACE ";" " " script "${script}")
  # It begins first, and leaves the processors to the tests.
  add_test(NAME build_${name} ${when} COMMAND nice -n 10 sh -c "${script}")
  set_tests_properties(build_${name} PROPERTIES
    FIXTURES_SETUP ${name} LABELS "${labels};cpu" PROCESSORS 2 COST 1000 TIMEOUT 3600)
  foreach(program ${programs})
    string(REGEX REPLACE "_.*" "" kind ${program})
    set(arguments)
    if(kind STREQUAL fuzz)
      string(REPLACE "fuzz_" "" door ${program})
      set(arguments ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus/${door} 20000)
    endif()
    add_test(NAME ${name}_${program} ${when} COMMAND ${folder}/tests/${kind}/${program} ${arguments})
    set_tests_properties(${name}_${program} PROPERTIES FIXTURES_REQUIRED ${name} LABELS "${labels}" TIMEOUT 1500)
  endforeach()
endfunction()

# Without the two checks that take as long to compile as all others: AddressSanitizer stops at a null pointer, too, and
# this processor reads what is not aligned. -Og takes two thirds of the time that -O1 takes to compile.
sanitizer(asan "-Og -fsanitize=address,undefined -fno-sanitize=null,alignment -fno-sanitize-recover=undefined"
  unit_util unit_lock unit_redis unit_run unit_cli contract
  fuzz_argv fuzz_config fuzz_duration fuzz_name fuzz_record fuzz_reply fuzz_url)
sanitizer(tsan "-Og -fsanitize=thread" nightly unit_util unit_redis unit_run)
