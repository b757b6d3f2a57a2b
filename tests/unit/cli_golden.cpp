#include "unit/cli_golden.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace rlock::test {

std::string golden(const std::string& file, const std::string& actual) {
  const std::string path = std::string(RLOCK_GOLDEN) + "/" + file;
  if (std::getenv("RLOCK_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  std::ifstream stored(path);
  std::ostringstream text;
  text << stored.rdbuf();
  return text.str();
}

}  // namespace rlock::test
