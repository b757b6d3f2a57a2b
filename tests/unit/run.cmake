# run_hold is a small rlock over a scripted store, run_probe a command that prints what it sees.
set(support ${CMAKE_CURRENT_LIST_DIR}/../support)
add_executable(run_hold ${support}/run_hold.cpp)
target_include_directories(run_hold PRIVATE ${CMAKE_CURRENT_LIST_DIR}/..)
target_link_libraries(run_hold PRIVATE rlock_run)
add_executable(run_probe ${support}/run_probe.cpp)
# It stands for a user's command: no sanitizer puts off its signals.
target_compile_options(run_probe PRIVATE -fno-sanitize=all)
target_link_options(run_probe PRIVATE -fno-sanitize=all)

rlock_unit(run run_end.cpp run_inherit.cpp run_guard.cpp run_lease.cpp run_namespace.cpp run_once.cpp run_reentry.cpp run_signals.cpp run_suspend.cpp run_terminal.cpp
           run_process_tree.cpp run_process_handle.cpp ../support/job.cpp)
target_compile_definitions(unit_run PRIVATE RUN_HOLD="$<TARGET_FILE:run_hold>"
                                            RUN_PROBE="$<TARGET_FILE:run_probe>")
add_dependencies(unit_run run_hold run_probe)
# Once more where process groups are those of another pid namespace.
add_test(NAME unit_run_namespace
  COMMAND unshare --pid --fork --mount-proc $<TARGET_FILE:unit_run> "--test-case=a signal reaches also*")
set_tests_properties(unit_run_namespace PROPERTIES LABELS unit SKIP_REGULAR_EXPRESSION "unshare failed")
