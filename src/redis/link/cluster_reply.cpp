#include "redis/link/cluster_reply.hpp"

#include <charconv>

namespace rlock::redis {
namespace {

// Takes the text up to `mark`.
std::string_view next(std::string_view& text, char mark) {
  size_t end = text.find(mark);
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// `10.0.0.1:6381`, `::1:6381`, `:6381`, `?:6381`: the last two where a node does not know its name.
std::optional<HostPort> parse_host_port(std::string_view text) {
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  HostPort at{std::string(text.substr(0, colon)), 0};
  if (at.host == "?") at.host.clear();
  std::string_view digits = text.substr(colon + 1);
  std::from_chars(digits.data(), digits.data() + digits.size(), at.port);
  if (at.port < 1 || at.port > 65535) return std::nullopt;
  return at;
}

bool has_flag(std::string_view flags, std::string_view flag) {
  while (!flags.empty()) {
    if (next(flags, ',') == flag) return true;
  }
  return false;
}

}  // namespace

std::optional<Redirect> redirect_in(std::string_view error) {
  std::string_view word = next(error, ' ');
  if (word != "MOVED" && word != "ASK") return std::nullopt;
  next(error, ' ');  // the slot
  auto to = parse_host_port(next(error, ' '));
  if (!to) return std::nullopt;
  return Redirect{word == "ASK" ? Redirect::Kind::ask : Redirect::Kind::moved, std::move(*to)};
}

// A line: id address@bus-port[,name[,more]] flags master ping pong epoch state slots…
std::vector<HostPort> masters_in(std::string_view nodes, NodeNaming naming) {
  constexpr int kBetweenFlagsAndSlots = 5;
  std::vector<HostPort> masters;
  while (!nodes.empty()) {
    std::string_view line = next(nodes, '\n');
    next(line, ' ');
    std::string_view where = next(line, ' ');
    std::string_view flags = next(line, ' ');
    for (int i = 0; i < kBetweenFlagsAndSlots; ++i) next(line, ' ');
    auto at = parse_host_port(next(where, '@'));
    next(where, ',');
    std::string_view name = next(where, ',');
    if (at && naming == NodeNaming::by_name && !name.empty()) at->host = name;
    if (at && has_flag(flags, "master") && !line.empty()) masters.push_back(std::move(*at));
  }
  return masters;
}

}  // namespace rlock::redis
