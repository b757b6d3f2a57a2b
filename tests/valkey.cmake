# Tests that talk to a server run against `redis-server` of the PATH, and once more against Valkey where it is installed:
# there the first redis-server on the PATH, for rlock's `local:` too, is valkey-server. By hand, after configuring:
#   PATH=$PWD/build/valkey:$PATH build/tests/contract/contract
find_program(VALKEY_SERVER valkey-server)
set(valkey_folder ${CMAKE_BINARY_DIR}/valkey)

if(VALKEY_SERVER)
  file(MAKE_DIRECTORY ${valkey_folder})
  file(CREATE_LINK ${VALKEY_SERVER} ${valkey_folder}/redis-server SYMBOLIC)
  add_test(NAME valkey_server COMMAND sh -c "redis-server --version")
  set_tests_properties(valkey_server PROPERTIES PASS_REGULAR_EXPRESSION "^Valkey server" LABELS valkey
    ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${valkey_folder}" FIXTURES_SETUP valkey)
else()
  message(STATUS "valkey-server was not found: the suites run against Redis alone")
  add_test(NAME valkey_server COMMAND ${CMAKE_COMMAND} -E echo "valkey-server was not found: the suites ran against Redis alone")
  set_tests_properties(valkey_server PROPERTIES SKIP_REGULAR_EXPRESSION "was not found" LABELS valkey)
endif()

# add_server_test(NAME TIMEOUT LABEL ENVIRONMENT COMMAND…): the test NAME and, where Valkey is, valkey_NAME.
function(add_server_test name timeout label environment)
  add_test(NAME ${name} COMMAND ${ARGN})
  set_tests_properties(${name} PROPERTIES LABELS "${label}" TIMEOUT ${timeout} ENVIRONMENT "${environment}")
  if(VALKEY_SERVER)
    list(REMOVE_ITEM label core)
    add_test(NAME valkey_${name} COMMAND ${ARGN})
    set_tests_properties(valkey_${name} PROPERTIES LABELS "${label};valkey" TIMEOUT ${timeout} ENVIRONMENT "${environment}"
      ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${valkey_folder}" FIXTURES_REQUIRED valkey)
  endif()
endfunction()
