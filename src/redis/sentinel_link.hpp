#pragma once

#include <optional>
#include <string>
#include <vector>

#include "redis/connection.hpp"
#include "redis/link.hpp"
#include "redis/sentinels.hpp"

namespace rlock::redis {

// The way to the master of a Sentinel group. The sentinels are asked anew before each command: a
// deposed master goes on calling itself master for many seconds, and what it acknowledges is lost.
// (L34; FAULTS 27)
class SentinelLink final : public Link {
 public:
  // `master`: credentials, database and time limit; where it is the sentinels tell.
  SentinelLink(Sentinels sentinels, Server master);

  void start(const std::vector<std::string>& words) override;
  void wants(std::vector<pollfd>& out) const override;
  util::TimePoint due() const override;
  bool advance(util::TimePoint now) override;
  util::Result<ReplyPtr> take() override;
  bool may_have_arrived() const override { return elected_ && connection_->may_have_arrived(); }
  void drop() override;
  std::string label() const override { return sentinels_.label() + database_; }
  std::string node() const override { return connection_ ? connection_->node() : label(); }
  bool is_secret(std::string_view text) const override { return tells_password(master_, text); }

 private:
  enum class Phase { idle, asking, talking, ended };

  void elected(HostPort master);

  Sentinels sentinels_;
  Server master_;
  std::string database_;  // `/2`
  Phase phase_ = Phase::idle;
  std::vector<std::string> words_;
  std::optional<Connection> connection_;  // to the master elected last
  bool elected_ = false;                  // for this command
  std::optional<util::Error> error_;
};

}  // namespace rlock::redis
