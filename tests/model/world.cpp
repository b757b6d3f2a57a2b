#include "model/world.hpp"

#include <algorithm>
#include <sstream>

namespace rlock::model {

Line line_of(const Memory& memory, const std::string& owner) {
  Line line;
  auto field = memory.who.find("+" + owner);
  if (field == memory.who.end()) return line;
  std::string version;
  std::istringstream(field->second) >> version >> line.state >> line.limit >> line.token;
  const std::string word = " slot=";
  const size_t at = field->second.find(word);
  if (at != std::string::npos) line.slot = std::stoll(field->second.substr(at + word.size()));
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
