// Runs a target without libFuzzer, for the normal tests: each file of a corpus, then mutations of
// them that a seed decides.
//
//   fuzz_TARGET CORPUS [ROUNDS]        the seed: RLOCK_FUZZ_SEED, else 1
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Random = std::mt19937_64;

// Where it ends badly, this is what it was given.
std::string current;

// Async-signal-safe: whatever broke, the input comes out.
void print_input(int signal) {
  constexpr char kDigits[] = "0123456789abcdef";
  [[maybe_unused]] ssize_t written = write(2, "input:", 6);
  for (char c : current) {
    auto byte = static_cast<unsigned char>(c);
    const char hex[] = {' ', kDigits[byte >> 4], kDigits[byte & 15]};
    written = write(2, hex, sizeof hex);
  }
  written = write(2, "\n", 1);
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void run(const std::string& input) {
  current = input;
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
}

std::vector<std::string> corpus_in(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry);
  std::sort(paths.begin(), paths.end());  // the same on every machine
  std::vector<std::string> inputs;
  for (const auto& path : paths) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

size_t below(Random& random, size_t bound) {
  return bound == 0 ? 0 : static_cast<size_t>(random() % bound);
}

const std::string kWords[] = {"\x1b[31m",
                              "\xe2\x80\xae",
                              "\xff",
                              "\xc2\x9b",
                              std::string(1, '\0'),
                              "\r\n",
                              "\n",
                              "%",
                              "%00",
                              "@",
                              ":",
                              "//",
                              "[",
                              "]",
                              "{",
                              "}",
                              "\"",
                              "'",
                              "=",
                              "--",
                              "-1",
                              "0",
                              "9223372036854775807",
                              "18446744073709551616",
                              "1e999",
                              "*1\r\n",
                              "$-1\r\n",
                              "*-1\r\n",
                              "\xf0\x9f\x92\xa9"};

std::string mutated(std::string text, const std::vector<std::string>& corpus, Random& random) {
  size_t at = below(random, text.size() + 1);
  size_t length = below(random, text.size() - at + 1);
  switch (random() % 5) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(random());
      break;
    case 1:
      text.insert(at, kWords[below(random, std::size(kWords))]);
      break;
    case 2:
      text.erase(at, length);
      break;
    case 3:
      text.insert(at, text.substr(below(random, text.size() + 1), length));
      break;
    default:
      const std::string& other = corpus[below(random, corpus.size())];
      text = text.substr(0, at) + other.substr(below(random, other.size() + 1));
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 64;
  const char* given = std::getenv("RLOCK_FUZZ_SEED");
  const unsigned long seed = given == nullptr ? 1 : std::strtoul(given, nullptr, 10);
  const long rounds = argc > 2 ? std::atol(argv[2]) : 0;
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, print_input);
  std::vector<std::string> corpus = corpus_in(argv[1]);
  if (corpus.empty()) return 66;
  std::printf("%zu files, %ld mutations, seed %lu\n", corpus.size(), rounds, seed);
  std::fflush(stdout);
  for (const std::string& input : corpus) run(input);
  Random random(seed);
  for (long round = 0; round < rounds; ++round) {
    std::string input = corpus[below(random, corpus.size())];
    for (size_t changes = 1 + below(random, 4); changes > 0; --changes) {
      input = mutated(std::move(input), corpus, random);
    }
    run(input);
  }
  return 0;
}
