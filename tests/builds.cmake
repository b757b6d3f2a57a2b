# What most people do not need is no part of a usual build: a test of its label makes it, before the tests that need it.

# built_for(FIXTURE TARGET...): the test build_FIXTURE makes these targets, before each test with FIXTURES_REQUIRED FIXTURE.
function(built_for fixture)
  set_target_properties(${ARGN} PROPERTIES EXCLUDE_FROM_ALL ON)
  set_property(GLOBAL APPEND PROPERTY rlock_fixtures ${fixture})
  set_property(GLOBAL APPEND PROPERTY rlock_built_for_${fixture} ${ARGN})
endfunction()

# Two programs that build in one folder would disturb each other: one of these tests at a time, and the longest first.
function(add_build_tests)
  get_property(fixtures GLOBAL PROPERTY rlock_fixtures)
  list(REMOVE_DUPLICATES fixtures)
  foreach(fixture ${fixtures})
    get_property(targets GLOBAL PROPERTY rlock_built_for_${fixture})
    add_test(NAME build_${fixture}
      COMMAND nice ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --parallel ${processors} --target ${targets})
    list(LENGTH targets count)
    math(EXPR cost "1000 + ${count}")
    set_tests_properties(build_${fixture} PROPERTIES
      FIXTURES_SETUP ${fixture} LABELS build RESOURCE_LOCK build_folder COST ${cost} TIMEOUT 3600)
  endforeach()
endfunction()
