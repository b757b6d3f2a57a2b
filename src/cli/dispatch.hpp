#pragma once

namespace rlock::cli {

// The whole program; returns its exit code.
int run_program(int argc, char** argv);

}  // namespace rlock::cli
