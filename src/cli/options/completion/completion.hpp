#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// Completion scripts: each is a template beside this file, filled from the options table.
namespace rlock::cli {

enum class Shell : uint8_t { bash, zsh, fish };

std::optional<Shell> find_shell(std::string_view name);

// The whole completion script, as `rlock completion` prints it.
std::string completion_script(Shell shell);

// The templates, embedded.
extern const std::string_view kBashTemplate;
extern const std::string_view kZshTemplate;
extern const std::string_view kFishTemplate;

}  // namespace rlock::cli
