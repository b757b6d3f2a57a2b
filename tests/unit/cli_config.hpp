#pragma once

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "cli/options/values.hpp"
#include "cli/settings/config.hpp"
#include "cli/settings/connect.hpp"
#include "cli/settings/resolve.hpp"
#include "support/scratch.hpp"
#include "unit/cli_fixture.hpp"

// Configuration files, and what a command line becomes with them.
namespace rlock::test {

using namespace cli;
using Words = std::vector<std::string>;

inline std::map<std::string, std::string> variables;

inline const char* fake_getenv(const char* name) {
  auto found = variables.find(name);
  return found == variables.end() ? nullptr : found->second.c_str();
}

// Configuration files of this test's own, and no variables.
class Folder {
 public:
  Folder() { variables.clear(); }
  const std::string& path() const { return scratch_.path(); }

  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) const {
    std::string file = scratch_.file(name);
    std::ofstream(file) << text;
    REQUIRE(chmod(file.c_str(), mode) == 0);
    return file;
  }

 private:
  Scratch scratch_;
};

inline Invocation call(const Words& words) {
  auto command_line = parse(words);
  if (!command_line) FAIL(command_line.error().text);
  return std::get<Invocation>(*command_line);
}

inline Invocation run_call(Words flags = {}) {
  flags.insert(flags.begin(), "run");
  flags.insert(flags.end(), {"x", "--", "true"});
  return call(flags);
}

// The choice of `words` for an option.
inline void choose(Choices& choices, Opt id, Words words, Source source = Source::option) {
  auto setting = make_setting(row_of(id), std::move(words), source, shown_name(id));
  if (!setting) FAIL(setting.error().text);
  choices.set(id, *std::move(setting));
}

// The choices of `invocation`, completed by `files`, the one with the highest precedence first.
inline Choices configured(Invocation invocation, const Words& files) {
  auto ok = resolve(invocation, fake_getenv, files);
  if (!ok) FAIL(ok.error().text);
  return invocation.choices;
}

inline std::string error_of(const Words& files, Invocation invocation = run_call()) {
  auto ok = resolve(invocation, fake_getenv, files);
  REQUIRE_FALSE(ok);
  CHECK(ok.error().kind == ErrorKind::config);
  return ok.error().text;
}

inline std::string error_of_text(const std::string& text) {
  Folder folder;
  std::string path = folder.write("rlock.toml", text);
  std::string said = error_of({path});
  CHECK(contains(said, path));
  return said.substr(said.find(path) + path.size());
}

inline Choices of_text(const std::string& text) {
  Folder folder;
  return configured(run_call(), {folder.write("rlock.toml", text)});
}

inline std::string example_text() {
  std::ifstream file(RLOCK_EXAMPLE);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace rlock::test
