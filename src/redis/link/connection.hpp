#pragma once

#include <poll.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/link/handshake.hpp"
#include "redis/link/link.hpp"
#include "redis/link/reply.hpp"
#include "redis/net/dialer.hpp"
#include "redis/net/server.hpp"
#include "redis/net/socket.hpp"
#include "util/clock.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// One connection to one server, one command in flight. It connects when a command needs it. CLIENT
// SETNAME goes out in one write with the first command; steps that decide where and as which user a
// command runs (AUTH, SELECT, ROLE, the check of a quorum member) are answered before the command
// is sent. Every reply is read. A failure of the transport closes it, and the next command
// reconnects.
class Connection final : public Link {
 public:
  explicit Connection(Server server);

  void start(const std::vector<std::string>& words) override;
  void follow(const std::vector<std::string>& words) override;
  void start_batch(Batch batch) override;
  // The socket is not used again after these commands.
  void pipeline(const std::vector<std::string>& words) override;
  // Waits for a message that the server sends by itself, as of a channel; fails without an open
  // socket. May be called again after a wait without a message.
  void listen();
  bool was_accepted() const override { return server().addresses->was_accepted(); }
  bool knows_final_script() const override;
  bool is_open() const override { return stream_ != nullptr; }
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  bool settle() override;
  Result<ReplyPtr> take() override;
  std::vector<Result<ReplyPtr>> take_batch() override;
  bool may_have_arrived() const override { return fully_sent_; }
  // Yes while a password that the server refused is fetched again.
  Answered answered() const override { return auth_error_ ? Answered::yes : Answered::no; }
  // Closes the socket.
  void drop() override;
  std::string label() const override { return server().label(); }
  std::string node() const override { return server().label(); }
  bool is_quorum_member() const override { return server().members != nullptr; }
  bool contains_secret(std::string_view text) const override {
    return contains_password(server(), text);
  }

  const Server& server() const { return *server_; }
  // Of the server, while the socket is open; nothing without TLS.
  std::optional<std::chrono::system_clock::time_point> certificate_end() const {
    return stream_ ? stream_->certificate_end() : std::nullopt;
  }

 private:
  static constexpr size_t kReadSize = 16 * size_t{1024};

  enum class CommandPhase { idle, asked, fetching, dialing, talking, ended };

  std::string_view unsent() const { return std::string_view(out_).substr(sent_); }

  void start_encoded(std::string command, size_t replies);
  void begin(TimePoint now);
  void dial(TimePoint now);
  void handle_new_password(TimePoint now);
  void handle_connected(util::Fd fd);
  void talk();
  std::optional<Error> send_rest();
  void read_replies();
  void handle_reply(ReplyPtr reply);
  void keep(ReplyPtr reply);
  void end(Result<ReplyPtr> result);
  void handle_auth_error(Error why);
  void handle_disconnect(Error why);
  void fail(const std::string& why);
  void fail(Error why);

  std::unique_ptr<Server> server_;  // at a stable address: the dialer refers to it
  Dialer dialer_;
  CommandPhase phase_ = CommandPhase::idle;
  TimePoint handshake_deadline_;
  Handshake handshake_;  // of this socket
  std::unique_ptr<Stream> stream_;
  bool received_ = false;  // a byte, over this socket
  std::string command_;    // or several
  size_t replies_ = 1;     // how many it has
  std::vector<ReplyPtr> earlier_replies_;
  bool follows_ = false;             // the command belongs to this socket, and to no other
  bool pipelined_ = false;           // another command follows, whose reply nobody reads
  bool held_back_ = false;           // the command, until the handshake is answered
  std::optional<Error> auth_error_;  // of the first password for this command; one more is tried
  std::string out_;
  size_t sent_ = 0;
  bool fully_sent_ = false;  // the command as a whole
  ReplyReader reader_;
  // Most replies are short: of a buffer on the stack each page would be touched.
  std::unique_ptr<char[]> buffer_;
  std::optional<Result<ReplyPtr>> result_;
};

}  // namespace rlock::redis
