#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "redis/link/connection.hpp"
#include "redis/link/handshake.hpp"
#include "redis/link/plain_probe.hpp"
#include "redis/net/dialer.hpp"
#include "redis/net/stream.hpp"

namespace rlock::redis {

// The life of one connection: its socket, what is sent and read, and what the current command waits
// for.
class Connection::State {
 public:
  explicit State(Server server) : server_(std::move(server)), dialer_(server_) {
    if (server_.addresses == nullptr) server_.addresses = std::make_shared<AddressMemory>();
  }

  void start(std::string command, size_t replies = 1);
  void follow(std::string command);
  void pipeline(const std::vector<std::string>& words);
  void listen();
  bool knows_final_script() const;
  bool is_open() const { return stream_ != nullptr; }
  void wants(std::vector<pollfd>& out) const;
  TimePoint due() const;
  bool advance(TimePoint now);
  bool settle();
  Result<ReplyPtr> take();
  std::vector<Result<ReplyPtr>> take_batch();
  void drop();
  bool may_have_arrived() const { return fully_sent_; }
  Answered answered() const { return auth_error_ ? Answered::yes : Answered::no; }
  const Server& server() const { return server_; }
  std::optional<std::chrono::system_clock::time_point> certificate_end() const {
    return stream_ ? stream_->certificate_end() : std::nullopt;
  }

 private:
  static constexpr size_t kReadSize = 16 * size_t{1024};

  enum class CommandPhase { idle, asked, fetching, dialing, talking, ended };

  std::string_view unsent() const { return std::string_view(out_).substr(sent_); }

  void begin(TimePoint now);
  void dial(TimePoint now);
  void handle_new_password(TimePoint now);
  void handle_connected(util::Fd fd);
  void talk();
  void probe_plain_port(TimePoint now);
  std::optional<Error> send_rest();
  void read_replies();
  void handle_reply(ReplyPtr reply);
  void keep(ReplyPtr reply);
  void end(Result<ReplyPtr> result);
  void handle_auth_error(Error why);
  void handle_disconnect(Error why);
  void fail(const std::string& why);
  void fail(Error why);

  Server server_;
  Dialer dialer_;
  CommandPhase phase_ = CommandPhase::idle;
  TimePoint handshake_deadline_;
  TimePoint probe_at_;                 // when silence to a TLS handshake is suspicious
  std::optional<PlainProbe> probe_{};  // of this socket's handshake
  Handshake handshake_;                // of this socket
  std::unique_ptr<Stream> stream_;
  std::string command_;  // or several
  size_t replies_ = 1;   // how many it has
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
  std::unique_ptr<char[]> buffer_ = std::make_unique_for_overwrite<char[]>(kReadSize);
  std::optional<Result<ReplyPtr>> result_;
};

}  // namespace rlock::redis
