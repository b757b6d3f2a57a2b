#include "cli/settings/connect.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <variant>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/view.hpp"
#include "redis/net/url.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using redis::Format;

// What the locks of other clients cannot store.
struct NativeOnlyOption {
  Opt option;
  const char* why;
};
constexpr const char* kNoMarks = "such locks have no record of what was done";
constexpr NativeOnlyOption kNativeOnlyOptions[] = {
    {Opt::slots, "such locks have one holder"},
    {Opt::shared, "such locks have one holder"},
    {Opt::min_hold, "such locks are free as soon as they are released"},
    {Opt::max_queue, "such locks have no queue"},
    {Opt::once, kNoMarks},
    {Opt::once_per, kNoMarks},
    {Opt::once_within, kNoMarks},
    {Opt::supersede, "such locks have no queue"},
    {Opt::while_closed, "such locks cannot be closed"},
    {Opt::urgent, "such locks have no queue"},
    {Opt::history_rows, "such locks have no history"},
    {Opt::replicas, "rlock has no replica confirm such locks"},
    {Opt::token, "such locks have no fencing tokens"},
    {Opt::reason, "such locks store no text"},
};

Status set_credentials(redis::OpenOptions& out, const Choices& choices, Getenv getenv) {
  out.user = choice_or_variable(choices, Opt::user, getenv);
  auto path = choices.last(Opt::password_file);
  auto command = choices.last(Opt::password_command);
  if (path && command) {
    return usage("--password-file and --password-command cannot be used together");
  }
  if (path || command) {
    TRY(out.secret, path ? redis::secret_in_file(*path) : redis::secret_of_command(*command));
    out.password = out.secret->current();
    return Done{};
  }
  for (const char* name : redis::kPasswordVariables) {
    if (!out.password) out.password = variable(getenv, name);
  }
  if (!out.password) out.password = choices.password();
  return Done{};
}

Result<redis::Verify> verification(const std::string& word) {
  if (word.empty() || word == "0" || word == "no" || word == "false") return redis::Verify::peer;
  if (word == "1" || word == "yes" || word == "true") return redis::Verify::nothing;
  return usage("RLOCK_INSECURE must be 1 or 0");
}

Status set_tls(redis::OpenOptions& out, const Choices& choices, Getenv getenv) {
  auto text = [&](Opt id) { return choice_or_variable(choices, id, getenv).value_or(""); };
  out.tls.cacert = text(Opt::cacert);
  out.tls.cacertdir = text(Opt::cacertdir);
  out.tls.cert = text(Opt::cert);
  out.tls.key = text(Opt::key);
  out.tls.sni = text(Opt::sni);
  TRY(out.tls.verify, verification(text(Opt::insecure)));
  return Done{};
}

// With a brace in the prefix, cluster would hash the keys of one lock to several slots.
Status check_prefix(const std::string& prefix) {
  bool valid = util::printable(prefix) == prefix && prefix.find_first_of("{}") == prefix.npos;
  if (valid) return Done{};
  return usage("bad prefix " + quoted_word(prefix) +
               ": control characters, { and } are not allowed");
}

Status set_replicas(redis::OpenOptions& out, const Choices& choices) {
  constexpr uint64_t kMostReplicas = 100;
  TRY(auto replicas, number_choice(choices, Opt::replicas, kMostReplicas));
  out.replicas = replicas.value_or(0);
  if (out.replicas == 0) return Done{};
  if (out.urls.size() > 1) {
    return usage(
        "--replicas cannot be used with several servers, which replicate nothing to each other");
  }
  if (std::holds_alternative<redis::LocalUrl>(out.urls.front())) {
    return usage("--replicas cannot be used with local:, which has no replica");
  }
  return Done{};
}

}  // namespace

Result<Format> format_choice(const Choices& choices) {
  std::string word = choices.last(Opt::format).value_or("native");
  for (Format format : {Format::native, Format::plain, Format::redisson}) {
    if (word == to_string(format)) return format;
  }
  return usage("--format must be native, plain or redisson, not " + in_quotes(word));
}

Status check_format(const Choices& choices) {
  TRY(auto format, format_choice(choices));
  if (format == Format::native) return Done{};
  for (const NativeOnlyOption& native_only : kNativeOnlyOptions) {
    if (!choices.has(native_only.option)) continue;
    return usage(util::format("{} cannot be used with --format {}: {}",
                              shown_name(native_only.option), to_string(format), native_only.why));
  }
  return Done{};
}

bool is_native_only(Opt option) {
  return std::any_of(
      std::begin(kNativeOnlyOptions), std::end(kNativeOnlyOptions),
      [&](const NativeOnlyOption& native_only) { return native_only.option == option; });
}

Result<std::optional<lock::Owner>> owner_choice(const Choices& choices) {
  auto text = choices.last(Opt::owner);
  if (!text) return std::optional<lock::Owner>();
  TRY(auto format, format_choice(choices));
  if (text->empty()) return usage("--owner is empty");
  const bool any_text = !choices.has(Opt::format) || format != Format::native;
  if (any_text) return std::optional(lock::Owner::external(*std::move(text)));
  TRY(auto owner, lock::Owner::parse(*text));
  return std::optional(std::move(owner));
}

const char* system_getenv(const char* name) {
  return ::getenv(name);
}

const char* empty_environment(const char*) {
  return nullptr;
}

std::optional<std::string> variable(Getenv getenv, std::string_view name) {
  const char* value = getenv(std::string(name).c_str());
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

std::optional<std::string> choice_or_variable(const Choices& choices, Opt id, Getenv getenv) {
  return choices.has(id) ? choices.last(id) : variable(getenv, row_of(id).environment);
}

Getenv credentials_environment(const Choices& choices, Getenv getenv) {
  if (!choices.is_flag(Opt::url)) return getenv;
  const std::vector<std::string>& urls = choices.all(Opt::url);
  const bool own_credentials = std::any_of(urls.begin(), urls.end(), [](const std::string& text) {
    auto url = redis::parse_url(text);
    return url && redis::has_credentials(*url);
  });
  return own_credentials || variable(getenv, "RLOCK_URL") ? empty_environment : getenv;
}

void hide_passwords(std::span<char*> words) {
  for (char* word : words) {
    redis::mask_passwords({word, std::strlen(word)});
  }
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    char* const shown = *variable;
    char* value = std::strchr(shown, '=');
    if (value == nullptr) continue;
    const std::string_view name(shown, static_cast<size_t>(value++ - shown));
    const bool secret = redis::is_password_variable(name);
    if (!secret && name != "RLOCK_URL") continue;
    char* const copy = strdup(shown);
    if (copy == nullptr) continue;
    *variable = copy;
    if (secret) {
      explicit_bzero(value, std::strlen(value));
    } else {
      redis::mask_passwords({value, std::strlen(value)});
    }
  }
}

Result<redis::OpenOptions> connection_options(const Choices& choices, Getenv getenv) {
  redis::OpenOptions out;
  auto texts = choices.all(Opt::url);
  if (texts.empty()) texts = split_urls(variable(getenv, "RLOCK_URL").value_or(""));
  TRY(out.urls, redis::parse_urls(texts));
  out.prefix = choice_or_variable(choices, Opt::prefix, getenv).value_or(out.prefix);
  TRY_STATUS(check_prefix(out.prefix));
  TRY(out.format, format_choice(choices));
  TRY_STATUS(set_credentials(out, choices, credentials_environment(choices, getenv)));
  TRY_STATUS(set_tls(out, choices, getenv));
  TRY(auto timeout, duration_choice(choices, Opt::connect_timeout));
  if (timeout == Millis(0)) return usage("--connect-timeout must be longer than 0");
  out.connect_timeout = timeout.value_or(out.connect_timeout);
  TRY_STATUS(set_replicas(out, choices));
  return out;
}

}  // namespace rlock::cli
