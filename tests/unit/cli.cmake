rlock_unit(cli cli_config.cpp cli_connect.cpp cli_deadlock.cpp cli_doctor.cpp cli_held_locks.cpp cli_help.cpp cli_json.cpp cli_parse.cpp cli_history_rows.cpp cli_once.cpp cli_record.cpp
  cli_render.cpp cli_run_settings.cpp cli_console.cpp cli_run_exit.cpp cli_service_manager.cpp cli_watch.cpp)
target_compile_definitions(unit_cli PRIVATE RLOCK_GOLDEN="${CMAKE_SOURCE_DIR}/tests/cli/golden"
  RLOCK_EXAMPLE="${CMAKE_SOURCE_DIR}/packaging/rlock.toml.example" RLOCK_RECIPES="${CMAKE_SOURCE_DIR}/man/rlock-recipes.7")
target_link_libraries(unit_cli PRIVATE nlohmann_json::nlohmann_json)
