#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "redis/link/link.hpp"
#include "redis/link/reply.hpp"
#include "redis/net/socket.hpp"
#include "redis/net/url.hpp"
#include "util/clock.hpp"
#include "util/mutex.hpp"
#include "util/result.hpp"

namespace rlock::redis {

// Decides whether a server counts as a member of a quorum. It counts once, whatever its names.
// Right after a restart it may have lost locks, so it does not count unless it writes each change
// to its append-only file before it answers.

// The servers of a quorum by the run ids that they report, so that a server with two names counts
// once.
class MemberRegistry {
 public:
  // Records which server answers at `label`. Returns the label of another member if that is the
  // same server.
  std::optional<std::string> add_member(const std::string& label, const std::string& run_id);

 private:
  util::Mutex mutex_;  // the renewal thread has its own connections
  std::map<std::string, std::string> run_ids_;
};

// Whether the server keeps what it acknowledged.
enum class Durability { unknown, every_write };

// Checks the answer to INFO server. Returns nullopt if the server counts. ErrorKind::unavailable
// says until when the server does not count; ErrorKind::denied: its uptime is unknown;
// ErrorKind::usage: it is another member under a second name.
std::optional<Error> check_member(const redisReply& reply, Durability durability,
                                  const Server& server);

// The error for a server that turns out to be a Sentinel. `masters`: the masters that it watches.
Error is_sentinel(Endpoint sentinel, const std::vector<std::string>& masters);

// In the order of sending.
enum class HandshakeStep { auth, select, role, set_name, ping, script, append_only, sync, uptime };

// How a new connection logs in and checks the server, before or together with its first command.
class Handshake {
 public:
  Handshake() = default;  // for a connection without a handshake: no answer is awaited
  explicit Handshake(const Server& server);

  // All steps, as one text to send. There is at least one, so that each new connection has an
  // answer to wait for.
  const std::string& request() const { return request_; }
  // Whether the first command is sent only after the answers to the steps.
  bool holds_back(Delivery delivery) const;

  bool is_pending() const { return next_ < steps_.size(); }
  bool awaits_first() const { return next_ == 0; }
  // Whether the server reported that it knows Policy::final_script.
  bool knows_final_script() const { return knows_final_script_; }
  // The step whose answer comes next, while is_pending().
  HandshakeStep awaited() const { return steps_[next_]; }

  // Takes the next answer. Returns an Error if the connection cannot be used. Does not pass on the
  // text of a refused AUTH, because some servers quote the command, password included.
  std::optional<Error> read(const redisReply& reply, const Server& server);

 private:
  void add(HandshakeStep step, const std::vector<std::string>& words);
  void read_configuration(const redisReply& reply);

  std::vector<HandshakeStep> steps_;
  std::string request_;
  size_t next_ = 0;  // index in steps_
  bool append_only_ = false;
  bool syncs_always_ = false;
  bool knows_final_script_ = false;
};

// One connection to one server, with one batch of commands in flight. It connects when a command
// needs it. CLIENT SETNAME goes out in one write with the first command. Steps that decide where
// and as which user a command runs (AUTH, SELECT, ROLE, the check of a quorum member) are answered
// before the command is sent. Every reply is read. A failed transport closes the connection, and
// the next command reconnects.
class Connection final : public Link {
 public:
  explicit Connection(Server server);

  void start_batch(Batch batch) override;
  // Like start_batch(), but over the connection of a batch that is still in flight: its replies are
  // skipped. For a server that is slow to connect to or to answer.
  void start_behind(Batch batch);
  void follow(const std::vector<std::string>& words) override;
  void start_last_words(const std::vector<std::string>& words, std::string_view text) override;
  // Waits for a message that the server sends by itself, for example on a channel. Fails without an
  // open socket. May be called again after a wait without a message.
  void listen();
  bool was_accepted() const override { return server().addresses->was_accepted(); }
  // Whether the connection is open, as far as this side knows.
  bool is_open() const { return stream_ != nullptr; }
  void wants(std::vector<pollfd>& out) const override;
  TimePoint due() const override;
  bool advance(TimePoint now) override;
  bool settle() override;
  std::vector<Result<ReplyPtr>> take_batch() override;
  bool may_have_arrived() const override { return fully_sent_; }
  // Yes while rlock fetches a new password because the server refused the old one.
  Answered answered() const override { return auth_error_ ? Answered::yes : Answered::no; }
  // Closes the socket.
  void drop() override;
  std::string label() const override { return server().label(); }
  std::string node() const override { return server().label(); }
  const Server& node_server() const override { return server(); }
  bool contains_secret(std::string_view text) const override {
    return contains_password(server(), text);
  }
  bool uses_tls() const override { return server().tls != nullptr; }

  const Server& server() const { return *server_; }
  // When the server last showed that it is there: it accepted the connection, answered its part of
  // a TLS handshake, or sent something. While it has done none of these: since when it was dialed.
  TimePoint alive_at() const { return alive_at_; }
  // The end of the server's certificate while the socket is open; nullopt without TLS.
  std::optional<std::chrono::system_clock::time_point> certificate_end() const {
    return stream_ ? stream_->certificate_end() : std::nullopt;
  }

 private:
  static constexpr size_t kReadSize = 16 * size_t{1024};

  enum class RequestPhase { idle, asked, fetching, dialing, talking, ended };

  std::string_view unsent() const { return std::string_view(out_).substr(sent_); }
  // Whether the command waits until the server has answered the handshake.
  bool is_held_back() const { return handshake_.is_pending() && handshake_.holds_back(delivery_); }

  void set_command(const Batch& batch);
  void begin(TimePoint now);
  void dial(TimePoint now);
  void await_password(std::optional<TimePoint> until);
  void handle_password(TimePoint now);
  void handle_connected(util::Fd fd, TimePoint now);
  void talk(TimePoint now);
  std::optional<Error> send_rest();
  void read_replies();
  void handle_reply(ReplyPtr reply);
  void keep(ReplyPtr reply);
  bool may_be_sentinel() const;
  void handle_role(const redisReply& role);
  void finish_reply();
  void handle_bad_reply(Error why, std::string_view bytes);
  void handle_auth_error(Error why);
  void handle_disconnect(Error why);
  void close();
  void end(const Error& why);
  void fail(Error why);
  void fail(const std::string& why) { fail({ErrorKind::unavailable, why, Retry::later}); }

  std::unique_ptr<Server> server_;  // on the heap: the dialer refers to it
  Dialer dialer_;
  RequestPhase phase_ = RequestPhase::idle;
  TimePoint password_deadline_;  // while the password is fetched
  TimePoint handshake_deadline_;
  Handshake handshake_;  // of this socket
  std::unique_ptr<Stream> stream_;
  size_t received_ = 0;  // how many bytes came over this socket
  TimePoint alive_at_{};
  std::string command_;  // one command or several
  size_t replies_ = 1;   // how many replies the command has
  size_t skipped_ = 0;   // how many replies to earlier commands come first
  // last_words: for a new connection, which reads one reply and is closed.
  Delivery delivery_ = Delivery::normal;
  // Set after the first password for this command was refused; one more is tried.
  std::optional<Error> auth_error_;
  std::string out_;
  size_t sent_ = 0;
  bool fully_sent_ = false;  // the command as a whole was handed to the network
  ReplyReader reader_;
  // On the heap, because most replies are short, and a buffer on the stack would touch each page.
  std::unique_ptr<char[]> buffer_;
  std::vector<Result<ReplyPtr>> results_;
  bool asks_role_ = false;   // of a server without a command, once the replies have come
  bool asked_role_ = false;  // so that it asks only once
};

}  // namespace rlock::redis
