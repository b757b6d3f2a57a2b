rlock_unit(run run_guard_order.cpp run_process_handle.cpp run_process_tree.cpp run_reentry.cpp run_renewer.cpp run_stage.cpp run_stop_requests.cpp ../support/job.cpp)
# Once more where process groups are those of another pid namespace.
add_test(NAME unit_run_in_a_namespace
  COMMAND unshare --pid --fork --mount-proc $<TARGET_FILE:unit_run> "--test-case=a signal reaches also*")
set_tests_properties(unit_run_in_a_namespace PROPERTIES LABELS "unit;core" SKIP_REGULAR_EXPRESSION "unshare failed")
