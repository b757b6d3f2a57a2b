# Programs of today's sources with a patch.
find_program(PATCH patch REQUIRED)

# patched_sources(OUT PATCH FOLDER): the .cpp and .lua files below src that PATCH changes, in FOLDER with the changes. OUT are the files to be
# compiled. All scripts are embedded together, in one of them.
function(patched_sources out patch folder)
  file(STRINGS ${patch} files REGEX "^\\+\\+\\+ b/")
  list(TRANSFORM files REPLACE "^\\+\\+\\+ b/([^\t ]+).*" "\\1")
  if(NOT files OR NOT "${files};" MATCHES "^(src/[a-z_/]+\\.(cpp|lua);)+$")
    message(FATAL_ERROR "${patch} must change .cpp and .lua files below src, not \"${files}\"")
  endif()

  set(compiled ${files})
  list(FILTER compiled INCLUDE REGEX "\\.cpp$")
  list(TRANSFORM compiled PREPEND ${folder}/)
  if("${files};" MATCHES "\\.lua;")
    file(GLOB scripts RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/lua/*.lua)
    list(APPEND files ${scripts})
    list(REMOVE_DUPLICATES files)
    embed_scripts(${folder}/scripts.cpp ${folder}/src/lua)
    list(APPEND compiled ${folder}/scripts.cpp)
  endif()
  set(originals ${files})
  list(TRANSFORM originals PREPEND ${CMAKE_SOURCE_DIR}/)
  set(changed ${files})
  list(TRANSFORM changed PREPEND ${folder}/)
  set(apply ${CMAKE_SOURCE_DIR}/tests/mutants/apply.cmake)
  add_custom_command(
    OUTPUT ${changed}
    COMMAND ${CMAKE_COMMAND} -DPATCH=${PATCH} -DFILE=${patch} -DROOT=${CMAKE_SOURCE_DIR} -DFOLDER=${folder}
            "-DFILES=${files}" -P ${apply}
    DEPENDS ${originals} ${patch} ${apply}
    COMMENT "Applying ${patch}"
    VERBATIM)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${patch})
  set(${out} ${compiled} PARENT_SCOPE)
endfunction()

# changed_rlock(TARGET PATCH PROGRAM [VERSION]): the program PROGRAM, of the changed files and the libraries. It says that it is VERSION.
function(changed_rlock target patch program)
  set(folder ${program}.sources)
  patched_sources(compiled ${patch} ${folder})
  # The linker takes no object from a library whose functions it has already: so the original is an object of its own.
  set(originals ${compiled})
  list(TRANSFORM originals REPLACE "^${folder}" ${CMAKE_SOURCE_DIR})
  set_source_files_properties(${originals} DIRECTORY ${CMAKE_SOURCE_DIR}/src PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(ARGC GREATER 3)
    add_executable(${target} ${CMAKE_SOURCE_DIR}/src/main.cpp ${compiled})
    target_compile_definitions(${target} PRIVATE RLOCK_VERSION="${ARGV3}" RLOCK_COMMIT="" RLOCK_PROJECT_URL="")
  else()
    add_executable(${target} $<TARGET_OBJECTS:rlock_main> ${compiled})
  endif()
  target_link_libraries(${target} PRIVATE rlock_cli)
  target_compile_options(${target} PRIVATE -w)  # the program itself is compiled with all warnings
  get_filename_component(name ${program} NAME)
  get_filename_component(place ${program} DIRECTORY)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY ${place})
endfunction()
