#include "redis/link/connection.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "redis/net/secret.hpp"
#include "util/duration.hpp"

namespace rlock::redis {
namespace {

// After that an operator may have flushed the scripts that a server knew.
constexpr Millis kKnownFor{10'000};

}  // namespace

Connection::Connection(Server server)
    : server_(std::make_unique<Server>(std::move(server))),
      dialer_(*server_),
      buffer_(std::make_unique_for_overwrite<char[]>(kReadSize)) {
  if (server_->addresses == nullptr) server_->addresses = std::make_shared<AddressMemory>();
}

void Connection::start(const std::vector<std::string>& words) {
  start_encoded(encode(words), 1);
}

void Connection::start_batch(Batch batch) {
  start_encoded(encode_all(batch), batch.size());
}

void Connection::start_encoded(std::string command, size_t replies) {
  if (phase_ != CommandPhase::idle) drop();
  command_ = std::move(command);
  replies_ = replies;
  earlier_replies_.clear();
  auth_error_.reset();
  follows_ = false;
  pipelined_ = false;
  fully_sent_ = false;
  phase_ = CommandPhase::asked;
}

void Connection::follow(const std::vector<std::string>& words) {
  start(words);
  follows_ = true;
}

void Connection::pipeline(const std::vector<std::string>& words) {
  command_ += encode(words);
  pipelined_ = true;
}

bool Connection::knows_final_script() const {
  return handshake_.knows_final_script() && BootClock::now() < handshake_deadline_ + kKnownFor;
}

void Connection::listen() {
  if (stream_) {
    phase_ = CommandPhase::talking;
  } else {
    fail("not connected");
  }
}

void Connection::drop() {
  phase_ = CommandPhase::idle;
  dialer_.stop();
  stream_.reset();
  reader_ = ReplyReader();
  handshake_ = {};
  result_.reset();
}

// A socket that the server has closed is replaced before the command is sent into it.
void Connection::begin(TimePoint now) {
  if (stream_ && stream_->is_quiet()) {
    out_ = command_;
    sent_ = 0;
    phase_ = CommandPhase::talking;
    return;
  }
  drop();
  if (follows_) return fail("the server closed the connection");
  dial(now);
}

void Connection::dial(TimePoint now) {
  if (server_->secret) server_->password = server_->secret->current();
  if (server_->revive) {
    if (auto running = server_->revive(*server_); !running) return end(std::move(running).error());
    now = BootClock::now();
  }
  handshake_deadline_ = now + server_->connect_timeout;
  dialer_.start(now, handshake_deadline_);
  phase_ = CommandPhase::dialing;
}

// The password may have been rotated just now, so a refusal counts only where there is no newer
// one. That is fetched before the connect timeout begins.
void Connection::handle_auth_error(Error why) {
  if (server_->secret != nullptr && server_->addresses->was_accepted()) why.retry = Retry::later;
  if (server_->secret == nullptr || auth_error_ || follows_) return end(std::move(why));
  drop();
  auth_error_ = std::move(why);
  server_->secret->fetch(server_->password);
  phase_ = CommandPhase::fetching;
}

void Connection::handle_new_password(TimePoint now) {
  if (server_->secret->current() != server_->password) return dial(now);
  end(*auth_error_);
}

void Connection::handle_connected(util::Fd fd) {
  auto stream = make_stream(*server_, std::move(fd));
  if (!stream) return fail(std::move(stream).error());
  stream_ = *std::move(stream);
  received_ = false;
  const bool nameless = server_->addresses->hangs_up_on_client();
  earlier_replies_.clear();
  handshake_ = Handshake(*server_, nameless ? ClientNaming::skip : ClientNaming::send);
  held_back_ = handshake_.precedes(pipelined_ ? FirstCommand::final : FirstCommand::normal);
  out_ = handshake_.request(*server_);
  if (!held_back_) out_ += command_;
  sent_ = 0;
  phase_ = CommandPhase::talking;
}

bool Connection::advance(TimePoint now) {
  if (phase_ == CommandPhase::asked) begin(now);
  if (phase_ == CommandPhase::fetching && server_->secret->fetched()) {
    handle_new_password(now);
  }
  if (phase_ == CommandPhase::dialing && dialer_.advance(now)) {
    auto fd = dialer_.take();
    if (fd) {
      handle_connected(std::move(*fd));
    } else {
      end(std::move(fd).error());
    }
  }
  if (phase_ == CommandPhase::talking) talk();
  if (phase_ == CommandPhase::talking && handshake_.is_pending() && now >= handshake_deadline_) {
    fail("timed out after " + util::format_duration(server_->connect_timeout) +
         " (connected, but " + stream_->timeout_reason() + ")");
  }
  return phase_ == CommandPhase::ended || phase_ == CommandPhase::idle;
}

bool Connection::settle() {
  if (phase_ == CommandPhase::talking && unsent().empty()) read_replies();
  // The handshake was answered and the command is cancelled unsent: the connection stays usable.
  if (phase_ == CommandPhase::talking && !held_back_ && unsent() == command_) {
    out_.clear();
    sent_ = 0;
    phase_ = CommandPhase::ended;
    result_ = Error{ErrorKind::unavailable, server_->label() + ": cancelled before it was sent",
                    Retry::later};
  }
  return phase_ == CommandPhase::ended;
}

void Connection::talk() {
  // The last words of a server that hangs up say more than the broken pipe.
  std::optional<Error> error = send_rest();
  read_replies();
  // The command that was held back until the handshake was answered.
  if (!error && phase_ == CommandPhase::talking && !unsent().empty()) error = send_rest();
  if (error && phase_ == CommandPhase::talking) handle_disconnect(std::move(*error));
}

// Sends what the socket takes; why it takes no more, if it has failed.
std::optional<Error> Connection::send_rest() {
  std::string_view rest = unsent();
  Io io = stream_->write_some(rest);
  sent_ = out_.size() - rest.size();
  fully_sent_ = rest.empty() && !held_back_;
  return io == Io::failed ? std::optional(stream_->error()) : std::nullopt;
}

void Connection::read_replies() {
  Io io = Io::done;
  while (phase_ == CommandPhase::talking && io == Io::done) {
    size_t got = 0;
    io = stream_->read_some(buffer_.get(), kReadSize, got);
    if (io == Io::would_block) return;
    if (io == Io::closed) {
      return handle_disconnect(
          {ErrorKind::unavailable, "the server closed the connection", Retry::later});
    }
    if (io == Io::failed) return handle_disconnect(stream_->error());
    received_ = true;
    reader_.feed(buffer_.get(), got);
    while (phase_ == CommandPhase::talking) {
      auto reply = reader_.next();
      if (!reply) return fail(std::move(reply).error());
      if (*reply == nullptr) break;
      handle_reply(std::move(*reply));
    }
  }
}

void Connection::handle_reply(ReplyPtr reply) {
  if (!handshake_.is_pending()) {
    fully_sent_ = fully_sent_ && !is_error(*reply);
    if (server_->secret == nullptr || !is_auth_error(*reply)) return keep(std::move(reply));
    return handle_auth_error({ErrorKind::denied,
                              server_->label() + ": the password is no longer valid (NOAUTH)",
                              Retry::later, Answered::yes});
  }
  if (auto error = handshake_.read(*reply, *server_)) {
    error->answered = Answered::yes;
    if (is_auth_error(*reply)) return handle_auth_error(std::move(*error));
    return end(std::move(*error));
  }
  if (handshake_.is_pending()) return;
  dialer_.answered();
  server_->addresses->note_accepted();
  if (std::exchange(held_back_, false)) out_ += command_;
}

void Connection::keep(ReplyPtr reply) {
  if (earlier_replies_.size() + 1 == replies_) return end(std::move(reply));
  earlier_replies_.push_back(std::move(reply));
}

void Connection::end(Result<ReplyPtr> result) {
  // Bytes beyond the reply would be taken for the next command's.
  bool usable = result && reader_.empty() && unsent().empty() && !pipelined_;
  if (!usable) drop();
  phase_ = CommandPhase::ended;
  result_ = std::move(result);
}

// Some proxies hang up on CLIENT: the next try does not send it. A TLS port hangs up on whatever is
// not a TLS handshake.
void Connection::handle_disconnect(Error why) {
  if (!handshake_.is_pending()) return fail(std::move(why));
  const HandshakeStep step = handshake_.awaited();
  const bool plain = server_->tls == nullptr && server_->transport == Transport::tcp;
  if (why.kind == ErrorKind::unavailable) why.text += std::string(" on ") + to_string(step);
  if (step == HandshakeStep::set_name) {
    server_->addresses->note_client_hang_up();
  } else if (plain && !received_) {
    why.text += " (use rediss:// for a TLS port)";
  }
  fail(std::move(why));
}

void Connection::fail(const std::string& why) {
  fail(Error{ErrorKind::unavailable, why, Retry::later});
}

void Connection::fail(Error why) {
  why.text = server_->label() + ": " + why.text;
  end(std::move(why));
}

Result<ReplyPtr> Connection::take() {
  if (!result_) return Error{ErrorKind::internal, server_->label() + ": no reply to take"};
  phase_ = CommandPhase::idle;
  return *std::exchange(result_, std::nullopt);
}

std::vector<Result<ReplyPtr>> Connection::take_batch() {
  std::vector<Result<ReplyPtr>> all;
  auto last = take();
  if (!last) return failed_batch(replies_, last.error());
  for (ReplyPtr& reply : earlier_replies_) all.emplace_back(std::move(reply));
  all.push_back(std::move(last));
  return all;
}

void Connection::wants(std::vector<pollfd>& out) const {
  if (phase_ == CommandPhase::fetching) out.push_back({server_->secret->fd(), POLLIN, 0});
  if (phase_ == CommandPhase::dialing) dialer_.wants(out);
  if (phase_ != CommandPhase::talking) return;
  out.push_back(stream_->wants(unsent().empty() ? Sending::done : Sending::pending));
}

TimePoint Connection::due() const {
  if (phase_ == CommandPhase::dialing) return dialer_.due();
  if (phase_ == CommandPhase::fetching && !server_->secret->fetched()) return TimePoint::max();
  if (phase_ == CommandPhase::talking && handshake_.is_pending()) return handshake_deadline_;
  if (phase_ == CommandPhase::talking) return TimePoint::max();
  return phase_ == CommandPhase::idle ? TimePoint::max() : TimePoint::min();
}

}  // namespace rlock::redis
