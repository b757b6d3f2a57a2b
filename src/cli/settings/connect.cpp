#include "cli/settings/connect.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <variant>

#include "cli/options/values.hpp"
#include "cli/output/messages.hpp"
#include "cli/output/view.hpp"
#include "cli/settings/resolve.hpp"
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
    {Opt::ticket, "such locks have no queue"},
    {Opt::once, kNoMarks},
    {Opt::once_per, kNoMarks},
    {Opt::once_within, kNoMarks},
    {Opt::supersede, "such locks have no queue"},
    {Opt::while_closed, "such locks cannot be closed"},
    {Opt::urgent, "such locks have no queue"},
    {Opt::history_rows, "such locks have no history"},
    {Opt::replicas, "rlock does not ask replicas to confirm such locks"},
    {Opt::token, "such locks have no fencing tokens"},
    {Opt::reason, "such locks store no text"},
};

Status set_credentials(redis::OpenOptions& out, const Choices& choices) {
  out.user = choices.last(Opt::user);
  out.password = choices.last(Opt::password);
  out.unused_login = choices.unused_login();
  const auto path = choices.last(Opt::password_file);
  const auto command = choices.last(Opt::password_command);
  if (!path && !command) return Done{};
  TRY(out.secret, path ? redis::secret_in_file(*path) : redis::secret_of_command(*command));
  out.password = out.secret->current();
  return Done{};
}

redis::TlsOptions tls_options(const Choices& choices) {
  auto text = [&](Opt id) { return choices.last(id).value_or(""); };
  redis::TlsOptions tls;
  tls.cacert = text(Opt::cacert);
  tls.cert = text(Opt::cert);
  tls.key = text(Opt::key);
  tls.sni = text(Opt::sni);
  tls.verify = choices.has(Opt::insecure) ? redis::Verify::nothing : redis::Verify::peer;
  return tls;
}

// The file that rlock reads for this user: the machine's for root, whose jobs are the machine's.
std::string file_for_url(const Choices& choices) {
  if (auto named = choices.last(Opt::config)) return *std::move(named);
  const auto files = default_config_files(system_getenv);
  return geteuid() == 0 ? files.back() : files.front();
}

// Mentions cron and sudo, because they and others start programs with their own environment.
Error no_server(const Choices& choices) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  const std::string file = file_for_url(choices);
  std::string text = util::format(
      "no server given: use --url URL, RLOCK_URL, or url = \"URL\" in {}", util::printable(file));
  if (system_getenv("REDIS_URL") != nullptr) {
    text += "; rlock does not read REDIS_URL: write RLOCK_URL=$REDIS_URL";
  } else if (system_getenv("SUDO_UID") != nullptr || !terminal) {
    text += util::format("; {} not pass RLOCK_URL on, so write the URL into the file",
                         system_getenv("SUDO_UID") != nullptr ? "sudo does" : "cron and sudo do");
  } else {
    text += "; to try rlock on this machine, use --url local:";
  }
  for (const std::string& unreachable : unreachable_files(system_getenv))
    text += "; " + unreachable;
  return {ErrorKind::config, text};
}

// With a brace in the prefix, a cluster would hash the keys of one lock to several slots. A `$` is
// left of a variable that was not expanded: hosts with different prefixes would not exclude each
// other.
Status check_prefix(const std::string& prefix) {
  bool valid = util::printable(prefix) == prefix && prefix.find_first_of("${}") == prefix.npos;
  if (valid) return Done{};
  return usage("bad prefix " + quoted_word(prefix) +
               ": control characters, $, { and } are not allowed; check that each variable in it "
               "is defined");
}

// The user does not see a variable on the command line.
Error with_variable(Error error, const Setting& setting) {
  if (setting.source == Source::environment) error.text = setting.place + ": " + error.text;
  return error;
}

Status set_replicas(redis::OpenOptions& out, const Choices& choices) {
  out.replicas = choices.number(Opt::replicas).value_or(0);
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

Format format_choice(const Choices& choices) {
  const std::string word = choices.last(Opt::format).value_or("native");
  if (word == to_string(Format::plain)) return Format::plain;
  return word == to_string(Format::redisson) ? Format::redisson : Format::native;
}

Result<lock::LockName> parse_name(std::string_view text, const Choices& choices) {
  return format_choice(choices) == Format::native ? lock::LockName::parse(text)
                                                  : lock::LockName::parse_key(text);
}

Status check_format(const Choices& choices) {
  const Format format = format_choice(choices);
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
  if (text->empty()) return usage("--owner is empty; is its variable set?");
  const bool any_text = !choices.has(Opt::format) || format_choice(choices) != Format::native;
  if (any_text) return std::optional(lock::Owner::external(*std::move(text)));
  TRY(auto owner, lock::Owner::parse(*text));
  return std::optional(std::move(owner));
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

Status check_connection_setting(Opt id, const std::vector<std::string>& words) {
  if (id == Opt::prefix) return check_prefix(words.back());
  if (id != Opt::url) return Done{};
  auto urls = redis::parse_urls(words);
  return urls ? Status(Done{}) : std::move(urls).error();
}

Result<redis::OpenOptions> connection_options(const Choices& choices) {
  if (!choices.has(Opt::url)) return no_server(choices);
  redis::OpenOptions out;
  auto urls = redis::parse_urls(choices.all(Opt::url));
  if (!urls) return with_variable(std::move(urls).error(), choices[Opt::url]);
  out.urls = *std::move(urls);
  out.prefix = choices.last(Opt::prefix).value_or(out.prefix);
  if (auto valid = check_prefix(out.prefix); !valid) {
    return with_variable(std::move(valid).error(), choices[Opt::prefix]);
  }
  out.format = format_choice(choices);
  TRY_STATUS(set_credentials(out, choices));
  out.tls = tls_options(choices);
  out.connect_timeout = choices.duration(Opt::connect_timeout).value_or(out.connect_timeout);
  TRY_STATUS(set_replicas(out, choices));
  return out;
}

}  // namespace rlock::cli
