#include "redis/link/connection.hpp"

#include <algorithm>
#include <utility>

#include "lock/timing.hpp"
#include "redis/net/secret.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

// A lease that was granted just before a restart may last this long. With a shorter time a server
// that lost a lease would count; a longer time would be useless.
constexpr auto kRestartGuardSeconds = static_cast<uint64_t>(
    std::chrono::duration_cast<std::chrono::seconds>(timing::kLongestQuorumLease).count());

// A server measures its uptime by its wall clock, so the uptime is negative if that clock was set
// back since the start.
std::optional<uint64_t> uptime_in(const InfoFields& info) {
  auto seconds = util::parse_number<int64_t>(info_field(info, "uptime_in_seconds"));
  if (!seconds) return std::nullopt;
  return static_cast<uint64_t>(std::max<int64_t>(0, *seconds));
}

std::optional<Error> check_duplicate(const InfoFields& info, const Server& server) {
  const std::string run_id = info_field(info, "run_id");
  if (run_id.empty() || server.members == nullptr) return std::nullopt;
  auto other = server.members->add_member(server.label(), run_id);
  if (!other) return std::nullopt;
  return Error{ErrorKind::usage,
               util::format("{} is the same server as {}; a quorum needs independent servers",
                            server.label(), *other)};
}

Error not_counted(Error why) {
  why.cause = Cause::not_counted;
  return why;
}

std::optional<Error> check_uptime(const InfoFields& info, const Server& server) {
  auto uptime = uptime_in(info);
  if (!uptime) {
    return not_counted(
        {ErrorKind::denied,
         server.label() +
             " is not counted: its uptime is unknown; allow this user to run INFO (+info)"});
  }
  if (*uptime >= kRestartGuardSeconds) return std::nullopt;
  // The uptime is rounded down to whole seconds, so this time is late enough. Because it is rounded
  // up again, servers that started together have the same text.
  const int64_t counted = wall_seconds() + static_cast<int64_t>(kRestartGuardSeconds - *uptime);
  const std::string latest = util::format_utc((counted + 9) / 10 * 10);
  return not_counted({ErrorKind::unavailable,
                      util::format("{}: not counted until it has run for {} s, at the latest by "
                                   "{}, because it may have lost locks",
                                   server.label(), kRestartGuardSeconds, latest),
                      Retry::later});
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The first word, such as `WRONGPASS`: the only part of a refused AUTH that is safe to show.
std::string code_of(std::string_view text) {
  std::string_view code = text.substr(0, text.find(' '));
  return code.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string_view::npos
             ? std::string(code)
             : "an error";
}

Error denied(const Endpoint& server, std::string_view why) {
  return {ErrorKind::denied, util::format("{} denied access: {}", server.label(), why)};
}

Error not_ready(const Endpoint& server, std::string_view why, Cause cause = Cause::other) {
  return {ErrorKind::unavailable, util::format("{}: {}", server.label(), why), Retry::later,
          Answered::no, cause};
}

// Errors with which a server may answer any first command.
std::optional<Error> connection_refusal(std::string_view text, const Server& server) {
  // The second is the answer to a command of more than ten words before AUTH.
  if (text.starts_with("NOAUTH") || has(text, "Protocol error: unauthenticated")) {
    if (!server.unused.empty()) {
      return denied(server, "it requires a password (NOAUTH): " + server.unused);
    }
    return denied(server,
                  "it requires a password (NOAUTH): use --password-file or RLOCK_PASSWORD_FILE, "
                  "or for a Sentinel sentinel_password in the URL");
  }
  if (text.starts_with("DENIED"))
    return denied(server,
                  "it is in protected mode (DENIED): give the server a password, or turn "
                  "protected-mode off there");
  if (has(text, "max number of clients")) {
    return not_ready(server, "it has too many clients (maxclients)", Cause::too_many_clients);
  }
  return std::nullopt;
}

bool starting_up(std::string_view text) {
  return text.starts_with("LOADING") || text.starts_with("MASTERDOWN") || text.starts_with("BUSY");
}

bool starting_up(const redisReply& reply) {
  return is_error(reply) && starting_up(text_of(reply));
}

Error auth_refused(std::string_view text, const Server& server) {
  if (text.starts_with("WRONGPASS") || has(text, "invalid password")) {
    const std::string odd = oddity_of(server.password);
    return denied(
        server, "wrong user name or password (WRONGPASS); rlock config shows where they come from" +
                    (server.unused.empty() ? "" : "; " + server.unused) +
                    (odd.empty() ? "" : "; look at the password: " + odd));
  }
  if (has(text, "without any password configured") || has(text, "no password is set")) {
    return denied(server,
                  "the default user has no password, but rlock sent one: remove it, or give a user "
                  "name (--user)");
  }
  return denied(server, "AUTH failed with " + code_of(text));
}

Error select_refused(std::string_view text, const Server& server) {
  if (text.starts_with("NOPERM")) {
    Error error = denied(server,
                         "this user may not run SELECT (NOPERM): allow it (+select), or remove the "
                         "database from the URL");
    error.cause = Cause::select_denied;
    return error;
  }
  if (has(text, "unknown command") || has(text, "not allowed in cluster mode")) {
    return {ErrorKind::config,
            util::format("{}: the server has only one database; remove database {} from the URL",
                         server.label(), server.db)};
  }
  constexpr size_t kLongest = 300;
  std::string reason =
      contains_password(server, text) ? code_of(text) : std::string(text.substr(0, kLongest));
  return {ErrorKind::config,
          util::format("{}: cannot select database {} ({}): correct it in the URL", server.label(),
                       server.db, reason)};
}

bool is_master(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements == 0) return false;
  return text_of(*reply.element[0]) == "master";
}

// The answer to SCRIPT EXISTS for one script; false if it was refused.
bool is_known(const redisReply& reply) {
  return reply.type == REDIS_REPLY_ARRAY && reply.elements == 1 && reply.element[0]->integer == 1;
}

// Checks the answer to any step but the checks of a quorum member.
std::optional<Error> check_answer(HandshakeStep step, const redisReply& reply,
                                  const Server& server) {
  if (!is_error(reply)) {
    if (step != HandshakeStep::role || is_master(reply)) return std::nullopt;
    return not_ready(server, "it is a replica, not the master", Cause::failover);
  }
  const std::string_view text = text_of(reply);
  if (auto error = connection_refusal(text, server)) return error;
  // A user may lack the permission for CLIENT or ROLE. A server that is not ready, or a replica,
  // refuses the next command, too.
  const bool required =
      step == HandshakeStep::auth || step == HandshakeStep::select || step == HandshakeStep::uptime;
  if (!required) return std::nullopt;
  if (starting_up(text)) return not_ready(server, code_of(text), decode_error(text).cause);
  if (const auto outage = proxy_outage(text); !outage.empty()) return not_ready(server, outage);
  return step == HandshakeStep::auth ? auth_refused(text, server) : select_refused(text, server);
}

// How long a server is trusted to know a script: an operator may flush the scripts.
constexpr Millis kKnownFor{10'000};

// For messages.
std::string_view name_of(HandshakeStep step) {
  return util::to_string<HandshakeStep::uptime>(
      step, {"AUTH", "SELECT", "ROLE", "CLIENT SETNAME", "PING", "SCRIPT EXISTS", "CONFIG GET",
             "CONFIG GET", "INFO"});
}

}  // namespace

Error is_sentinel(Endpoint sentinel, const std::vector<std::string>& masters) {
  sentinel.db = 0;
  return {ErrorKind::config,
          util::format("{} is a Sentinel, which stores no locks: use {}/{}", sentinel.label(),
                       url_of_kind(sentinel, "+sentinel"),
                       masters.size() == 1 ? masters.front() : "MASTER"),
          Retry::never, Answered::yes, Cause::other_kind};
}

std::optional<std::string> MemberRegistry::add_member(const std::string& label,
                                                      const std::string& run_id) {
  std::lock_guard lock(mutex_);
  for (const auto& [other, its_id] : run_ids_) {
    if (other != label && its_id == run_id) return other;
  }
  run_ids_[label] = run_id;
  return std::nullopt;
}

std::optional<Error> check_member(const redisReply& reply, Durability durability,
                                  const Server& server) {
  const InfoFields info = read_info(text_of(reply));
  if (auto duplicate = check_duplicate(info, server)) return duplicate;
  if (durability == Durability::every_write) return std::nullopt;
  return check_uptime(info, server);
}

void Handshake::add(HandshakeStep step, const std::vector<std::string>& words) {
  steps_.push_back(step);
  request_ += encode(words);
}

Handshake::Handshake(const Server& server) {
  if (!server.user.empty()) {
    add(HandshakeStep::auth, {"AUTH", server.user, server.password});
  } else if (!server.password.empty()) {
    add(HandshakeStep::auth, {"AUTH", server.password});
  }
  if (server.db != 0) add(HandshakeStep::select, {"SELECT", std::to_string(server.db)});
  if (server.role == Role::master) add(HandshakeStep::role, {"ROLE"});
  // Some proxies close the connection after CLIENT SETNAME, and the name only helps operators.
  if (server.addresses != nullptr && server.addresses->hangs_up_on_client()) {
    add(HandshakeStep::ping, {"PING"});
  } else {
    add(HandshakeStep::set_name, {"CLIENT", "SETNAME", "rlock"});
  }
  if (server.members == nullptr) return;
  if (!server.final_script.empty()) {
    add(HandshakeStep::script, {"SCRIPT", "EXISTS", server.final_script});
  }
  add(HandshakeStep::append_only, {"CONFIG", "GET", "appendonly"});
  add(HandshakeStep::sync, {"CONFIG", "GET", "appendfsync"});
  add(HandshakeStep::uptime, {"INFO", "server"});
}

// After a refused step a server still carries out what follows: as another user, in another
// database, on a replica, or as a member of a quorum that lost its leases.
bool Handshake::holds_back(Delivery delivery) const {
  return steps_.front() <= HandshakeStep::role ||
         (delivery != Delivery::last_words && steps_.back() == HandshakeStep::uptime);
}

// A refused answer changes nothing.
void Handshake::read_configuration(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY) return;
  for (size_t i = 0; i + 1 < reply.elements; i += 2) {
    const std::string_view key = text_of(*reply.element[i]);
    const std::string_view value = text_of(*reply.element[i + 1]);
    if (key == "appendonly") append_only_ = value == "yes";
    if (key == "appendfsync") syncs_always_ = value == "always";
  }
}

std::optional<Error> Handshake::read(const redisReply& reply, const Server& server) {
  const HandshakeStep step = steps_[next_++];
  if (step == HandshakeStep::append_only || step == HandshakeStep::sync) read_configuration(reply);
  if (step == HandshakeStep::script) knows_final_script_ = is_known(reply);
  if (step == HandshakeStep::uptime && !starting_up(reply)) {
    const bool durable = append_only_ && syncs_always_;
    return check_member(reply, durable ? Durability::every_write : Durability::unknown, server);
  }
  return check_answer(step, reply, server);
}

Connection::Connection(Server server)
    : server_(std::make_unique<Server>(std::move(server))),
      dialer_(*server_),
      buffer_(std::make_unique_for_overwrite<char[]>(kReadSize)) {
  if (server_->addresses == nullptr) server_->addresses = std::make_shared<AddressMemory>();
  if (server_->admission == nullptr) server_->admission = std::make_shared<Admission>();
}

void Connection::set_command(const Batch& batch) {
  command_.clear();
  for (const auto& words : batch) command_ += encode(words);
  replies_ = batch.size();
  results_.clear();
  fully_sent_ = false;
}

void Connection::start_batch(Batch batch) {
  if (phase_ != RequestPhase::idle) drop();
  set_command(batch);
  auth_error_.reset();
  delivery_ = Delivery::normal;
  asks_role_ = false;
  phase_ = RequestPhase::asked;
}

void Connection::start_behind(Batch batch) {
  const bool in_flight = phase_ == RequestPhase::fetching || phase_ == RequestPhase::dialing ||
                         phase_ == RequestPhase::talking;
  if (!in_flight || asks_role_) return start_batch(std::move(batch));
  const bool handed_over = phase_ == RequestPhase::talking && !is_held_back();
  if (handed_over) skipped_ += replies_ - results_.size();
  set_command(batch);
  if (handed_over) out_ += command_;
}

void Connection::follow(const std::vector<std::string>& words) {
  start(words);
  delivery_ = Delivery::following;
}

void Connection::start_last_words(const std::vector<std::string>& words, std::string_view text) {
  const bool known =
      handshake_.knows_final_script() && BootClock::now() < handshake_deadline_ + kKnownFor;
  if (server_->members != nullptr && is_open() && !known) return start(with_text(words, text));
  start(words);
  if (server_->members == nullptr || is_open()) return;
  command_ += encode(with_text(words, text));
  delivery_ = Delivery::last_words;
}

void Connection::listen() {
  if (stream_) {
    phase_ = RequestPhase::talking;
  } else {
    fail("not connected");
  }
}

void Connection::close() {
  dialer_.stop();
  stream_.reset();
  reader_ = ReplyReader();
  handshake_ = {};
  skipped_ = 0;
}

void Connection::drop() {
  close();
  phase_ = RequestPhase::idle;
  results_.clear();
}

// Replaces a socket that the server has closed before it sends the command into it.
void Connection::begin(TimePoint now) {
  if (stream_ && stream_->is_quiet()) {
    out_ = command_;
    sent_ = 0;
    phase_ = RequestPhase::talking;
    return;
  }
  drop();
  if (delivery_ == Delivery::following) return fail("the server closed the connection");
  if (server_->secret == nullptr) return dial(now);
  await_password(server_->secret->refresh());
}

void Connection::await_password(std::optional<TimePoint> until) {
  phase_ = RequestPhase::fetching;
  password_deadline_ = until.value_or(TimePoint::min());
}

void Connection::dial(TimePoint now) {
  if (server_->secret) server_->password = server_->secret->current();
  if (server_->revive) {
    if (auto running = server_->revive(*server_); !running) return end(running.error());
    now = BootClock::now();
  }
  handshake_deadline_ = now + server_->connect_timeout;
  dialer_.start(now, handshake_deadline_);
  alive_at_ = now;
  phase_ = RequestPhase::dialing;
}

// The password may have been rotated just now, so a refusal counts only if there is no newer
// password, which is fetched before the connect timeout begins.
void Connection::handle_auth_error(Error why) {
  if (server_->secret != nullptr && server_->admission->was_granted()) why.retry = Retry::later;
  if (server_->secret == nullptr || auth_error_ || delivery_ == Delivery::following)
    return end(why);
  drop();
  auth_error_ = std::move(why);
  await_password(server_->secret->fetch(server_->password));
}

void Connection::handle_password(TimePoint now) {
  const bool refused = auth_error_ && server_->secret->current() == server_->password;
  if (refused) return end(*auth_error_);
  dial(now);
}

void Connection::handle_connected(util::Fd fd, TimePoint now) {
  auto stream = make_stream(*server_, std::move(fd));
  if (!stream) return fail(std::move(stream).error());
  stream_ = *std::move(stream);
  received_ = 0;
  alive_at_ = now;
  handshake_ = Handshake(*server_);
  out_ = handshake_.request();
  if (!is_held_back()) out_ += command_;
  sent_ = 0;
  phase_ = RequestPhase::talking;
}

bool Connection::advance(TimePoint now) {
  if (phase_ == RequestPhase::asked) begin(now);
  if (phase_ == RequestPhase::fetching &&
      (server_->secret->fetched() || now >= password_deadline_)) {
    handle_password(now);
  }
  if (phase_ == RequestPhase::dialing && dialer_.advance(now)) {
    auto fd = dialer_.take();
    if (fd) {
      handle_connected(std::move(*fd), now);
    } else {
      end(fd.error());
    }
  }
  if (phase_ == RequestPhase::talking) talk(now);
  if (phase_ == RequestPhase::talking && handshake_.is_pending() && now >= handshake_deadline_) {
    Error silent = stream_->silence();
    silent.text = util::format("timed out after {} (connected, but {})",
                               util::format_duration(server_->connect_timeout), silent.text);
    fail(std::move(silent));
  }
  return phase_ == RequestPhase::ended || phase_ == RequestPhase::idle;
}

bool Connection::settle() {
  if (phase_ == RequestPhase::talking && unsent().empty()) read_replies();
  // The handshake was answered and the command is cancelled before it was sent, so the connection
  // stays usable.
  if (phase_ == RequestPhase::talking && !is_held_back() && skipped_ == 0 && unsent() == command_) {
    out_.clear();
    sent_ = 0;
    phase_ = RequestPhase::ended;
    results_ =
        failed_batch(replies_, {ErrorKind::unavailable,
                                server_->label() + ": cancelled before it was sent", Retry::later});
  }
  return phase_ == RequestPhase::ended;
}

void Connection::talk(TimePoint now) {
  const bool accepts = sent_ > 0;  // with TLS: its handshake is over
  const size_t received = received_;
  // The last reply of a server that closes the connection says more than the broken pipe.
  std::optional<Error> error = send_rest();
  read_replies();
  if (received_ > received || (!accepts && sent_ > 0)) alive_at_ = now;
  // The command that was held back until the handshake was answered.
  if (!error && phase_ == RequestPhase::talking && !unsent().empty()) error = send_rest();
  if (error && phase_ == RequestPhase::talking) handle_disconnect(std::move(*error));
}

// Sends what the socket accepts. Returns the error if the socket has failed.
std::optional<Error> Connection::send_rest() {
  std::string_view rest = unsent();
  Io io = stream_->write_some(rest);
  sent_ = out_.size() - rest.size();
  fully_sent_ = rest.empty() && !is_held_back();
  return io == Io::failed ? std::optional(stream_->error()) : std::nullopt;
}

void Connection::read_replies() {
  Io io = Io::done;
  while (phase_ == RequestPhase::talking && io == Io::done) {
    size_t got = 0;
    io = stream_->read_some(buffer_.get(), kReadSize, got);
    if (io == Io::would_block) return;
    if (io == Io::closed) {
      return handle_disconnect(
          {ErrorKind::unavailable, "the server closed the connection", Retry::later});
    }
    if (io == Io::failed) return handle_disconnect(stream_->error());
    received_ += got;
    reader_.feed(buffer_.get(), got);
    while (phase_ == RequestPhase::talking) {
      auto reply = reader_.next();
      if (!reply) return handle_bad_reply(std::move(reply).error(), {buffer_.get(), got});
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
    return end(*error);
  }
  if (handshake_.is_pending()) return;
  dialer_.answered();
  server_->addresses->note_accepted();
  if (handshake_.holds_back(delivery_)) out_ += command_;
}

void Connection::keep(ReplyPtr reply) {
  if (!is_error(*reply)) server_->admission->note_grant();
  if (skipped_ > 0) {
    --skipped_;
    return;
  }
  if (asks_role_) return handle_role(*reply);
  results_.emplace_back(std::move(reply));
  if (results_.size() < replies_) return;
  if (!may_be_sentinel()) return finish_reply();
  asks_role_ = asked_role_ = true;
  out_ = encode({"ROLE"});
  sent_ = 0;
}

// The server does not know a command, as a Sentinel, which has only a few.
bool Connection::may_be_sentinel() const {
  const auto unknown = [](const Result<ReplyPtr>& reply) {
    return reply && is_error(**reply) && text_of(**reply).starts_with("ERR unknown command");
  };
  return !asked_role_ && delivery_ != Delivery::last_words && reader_.empty() && unsent().empty() &&
         std::any_of(results_.begin(), results_.end(), unknown);
}

// Handles the reply of a Sentinel: its name, and the names of the masters that it watches.
void Connection::handle_role(const redisReply& role) {
  const bool known = role.type == REDIS_REPLY_ARRAY && role.elements > 0;
  if (known && text_of(*role.element[0]) == "sentinel") {
    std::vector<std::string> masters;
    for (size_t i = 0; role.elements > 1 && i < role.element[1]->elements; ++i) {
      masters.emplace_back(text_of(*role.element[1]->element[i]));
    }
    results_ = failed_batch(replies_, is_sentinel(*server_, masters));
  }
  finish_reply();
}

void Connection::finish_reply() {
  phase_ = RequestPhase::ended;
  // Bytes after the reply would be mistaken for the next command's reply.
  if (!reader_.empty() || !unsent().empty() || delivery_ == Delivery::last_words) close();
}

// If the first bytes are not a reply, the server is of another kind.
void Connection::handle_bad_reply(Error why, std::string_view bytes) {
  const bool first = handshake_.is_pending() && handshake_.awaits_first();
  const bool tls = bytes.starts_with("\x15\x03");  // an alert
  const bool web = bytes.starts_with("HTTP/") || bytes.starts_with("<");
  if (first && (tls || web || bytes.starts_with("SSH-"))) {
    why.kind = ErrorKind::config;
    why.retry = Retry::never;
    why.cause = Cause::other_kind;
    why.text += tls ? ": use rediss:// for a TLS port" : ": another kind of server listens there";
  }
  fail(std::move(why));
}

// Some proxies close the connection after CLIENT, so the next try does not send it. A TLS port
// closes it after anything but a TLS handshake.
void Connection::handle_disconnect(Error why) {
  if (why.kind == ErrorKind::denied && server_->admission->was_granted()) why.retry = Retry::later;
  if (!handshake_.is_pending()) return fail(std::move(why));
  const HandshakeStep step = handshake_.awaited();
  const bool plain = server_->tls == nullptr && !server_->is_unix();
  if (why.kind == ErrorKind::unavailable) why.text += util::format(" on {}", name_of(step));
  if (step == HandshakeStep::set_name && why.kind == ErrorKind::unavailable) {
    server_->addresses->note_client_hang_up();
  } else if (plain && received_ == 0) {
    why.text += " (use rediss:// for a TLS port)";
  }
  fail(std::move(why));
}

void Connection::fail(Error why) {
  why.text = server_->label() + ": " + why.text;
  end(why);
}

void Connection::end(const Error& why) {
  close();
  phase_ = RequestPhase::ended;
  results_ = failed_batch(replies_, why);
}

std::vector<Result<ReplyPtr>> Connection::take_batch() {
  phase_ = RequestPhase::idle;
  return std::exchange(results_, {});
}

void Connection::wants(std::vector<pollfd>& out) const {
  if (phase_ == RequestPhase::fetching) out.push_back({server_->secret->fd(), POLLIN, 0});
  if (phase_ == RequestPhase::dialing) dialer_.wants(out);
  if (phase_ != RequestPhase::talking) return;
  out.push_back(stream_->wants(unsent().empty() ? Sending::done : Sending::pending));
}

TimePoint Connection::due() const {
  if (phase_ == RequestPhase::dialing) return dialer_.due();
  if (phase_ == RequestPhase::fetching && !server_->secret->fetched()) return password_deadline_;
  if (phase_ == RequestPhase::talking && handshake_.is_pending()) return handshake_deadline_;
  if (phase_ == RequestPhase::talking) return TimePoint::max();
  return phase_ == RequestPhase::idle ? TimePoint::max() : TimePoint::min();
}

}  // namespace rlock::redis
