#include "model/world.hpp"

#include <algorithm>
#include <optional>
#include <sstream>

namespace rlock::model {
namespace {

std::optional<int64_t> number_after(const std::string& text, const std::string& word) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return std::nullopt;
  return std::stoll(text.substr(at + word.size()));
}

}  // namespace

Line line_of(const Memory& memory, const std::string& owner) {
  Line line;
  auto field = memory.who.find("+" + owner);
  if (field == memory.who.end()) return line;
  std::string version;
  std::istringstream(field->second) >> version >> line.state >> line.limit >> line.token >>
      line.since;
  line.since -= kEpochMs;
  line.slot = number_after(field->second, " slot=").value_or(0);
  line.once = field->second.find(" once=") != std::string::npos;
  line.counted = field->second.find(" counted=") != std::string::npos;
  line.supersedes = field->second.find(" supersede=") != std::string::npos;
  line.asked = number_after(field->second, " asked=").value_or(kEpochMs) - kEpochMs;
  return line;
}

const Row* find(const std::vector<Row>& rows, const std::string& member) {
  auto row =
      std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.member == member; });
  return row == rows.end() ? nullptr : &*row;
}

bool holds(const Memory& memory, const std::string& owner, Moment now) {
  const Row* row = find(memory.holders, owner);
  return row != nullptr && row->score > now;
}

int64_t kind_of(const Memory& memory, const std::string& owner, Moment now) {
  const Row* ended = find(memory.released, owner);
  return ended != nullptr && ended->score / 16 > now ? ended->score % 16 : -1;
}

std::string owner_of(const World& world, int client) {
  const auto& who = world.clients[static_cast<size_t>(client)];
  return std::string(1, static_cast<char>('A' + client)) + std::to_string(who.round);
}

bool awaits_reply(const World& world, int client) {
  return std::any_of(world.messages.begin(), world.messages.end(), [&](const Message& message) {
    return message.request.client == client && !message.abandoned;
  });
}

}  // namespace rlock::model
