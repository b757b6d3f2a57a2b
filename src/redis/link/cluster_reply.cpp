#include "redis/link/cluster_reply.hpp"

namespace rlock::redis {
namespace {

// Takes the text up to `mark`.
std::string_view next(std::string_view& text, char mark) {
  size_t end = text.find(mark);
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return word;
}

// A node that does not know its own name is `:6381` or `?:6381`.
std::optional<HostPort> parse_node(std::string_view text) {
  auto node = parse_host_port(text);
  if (node && node->host == "?") node->host.clear();
  return node;
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
  auto to = parse_node(next(error, ' '));
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
    auto node = parse_node(next(where, '@'));
    next(where, ',');
    std::string_view name = next(where, ',');
    if (node && naming == NodeNaming::by_name && !name.empty()) node->host = name;
    if (node && has_flag(flags, "master") && !line.empty()) masters.push_back(std::move(*node));
  }
  return masters;
}

}  // namespace rlock::redis
