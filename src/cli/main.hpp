#pragma once

namespace rlock::cli {

// The whole program; the exit code.
int main(int argc, char** argv);

}  // namespace rlock::cli
