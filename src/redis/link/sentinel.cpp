#include "redis/link/sentinel.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <utility>

#include "redis/link/reply.hpp"
#include "redis/net/redis_cli.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

std::optional<HostPort> address_of(std::string_view host, std::string_view port) {
  auto number = parse_port(port);
  if (host.empty() || !number) return std::nullopt;
  return HostPort{std::string(host), *number};
}

// The reply is {host, port}, or nil for an unknown master.
std::optional<HostPort> address_in(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2) return std::nullopt;
  return address_of(text_of(*reply.element[0]), text_of(*reply.element[1]));
}

// Reads the reply to SENTINEL MASTER: alternating names and values. Empty if the field is missing.
std::string_view field_in(const redisReply& reply, std::string_view name) {
  if (reply.type != REDIS_REPLY_ARRAY) return {};
  for (size_t i = 0; i + 1 < reply.elements; i += 2) {
    if (text_of(*reply.element[i]) == name) return text_of(*reply.element[i + 1]);
  }
  return {};
}

// A sentinel that leads a failover names the promoted replica as soon as that is master, but
// SENTINEL MASTER describes the old master until the other replicas follow. From then on the
// sentinel promotes no other replica.
std::optional<NamedMaster> described(const HostPort& named, const redisReply& state) {
  const std::string_view flags = field_in(state, "flags");
  if (flags.empty()) return std::nullopt;
  const bool in_progress = flags.find("failover_in_progress") != std::string_view::npos;
  const auto old = address_of(field_in(state, "ip"), field_in(state, "port"));
  return NamedMaster{named,
                     util::parse_number<uint64_t>(field_in(state, "config-epoch")).value_or(0),
                     in_progress && (!old || *old == named)};
}

std::string address_text(const HostPort& address) {
  return address.host + ":" + std::to_string(address.port);
}

Error unknown_master(const Connection& sentinel, const std::string& master) {
  return {ErrorKind::unavailable,
          "sentinel " + sentinel.label() + " does not know a master \"" + master + "\"",
          Retry::later, Answered::yes, Cause::unknown_master};
}

// If a reply comes later than this after the question to the sentinels, rlock believes it only if
// they still name the same master. A failover takes longer, and a round trip rarely does.
constexpr Millis kVoteLife{100};

// How long to wait for the other sentinels after a majority, if the question is whether a failover
// is in progress: only the sentinel that leads it knows. A sentinel that has answered before gets a
// multiple of the time that this took, as on a busy machine all of them do, by the time that the
// majority took. A sentinel that has not answered yet gets the time for each step: to accept the
// connection, to answer the handshakes, and to answer.
constexpr Millis kLeaderTime{100};
constexpr int kLeaderTimes = 4;
constexpr Millis kFirstAnswerTime{400};

}  // namespace

std::optional<HostPort> elect(const std::vector<SentinelVote>& votes, size_t existing) {
  for (const SentinelVote& candidate : votes) {
    const auto* master = std::get_if<NamedMaster>(&candidate);
    if (master == nullptr) continue;
    const auto count = std::count_if(votes.begin(), votes.end(), [&](const auto& vote) {
      const auto* other = std::get_if<NamedMaster>(&vote);
      return other != nullptr && other->address == master->address;
    });
    if (2 * static_cast<size_t>(count) > existing) return master->address;
  }
  return std::nullopt;
}

KnownSentinels read_others(const redisReply& reply) {
  KnownSentinels others;
  if (reply.type != REDIS_REPLY_ARRAY) return others;
  for (size_t i = 0; i < reply.elements; ++i) {
    const redisReply& other = *reply.element[i];
    const std::string its_id(field_in(other, "runid"));
    auto at = address_of(field_in(other, "ip"), field_in(other, "port"));
    if (its_id.empty() || !at) continue;
    const auto silent = util::parse_number<int64_t>(field_in(other, "last-ok-ping-reply"));
    others[its_id] = {*std::move(at), bounded_span(silent.value_or(0))};
  }
  return others;
}

KnownSentinels known_sentinels(const std::vector<SentinelView>& views) {
  KnownSentinels known;
  for (const SentinelView& view : views) known.insert(view.others.begin(), view.others.end());
  for (const SentinelView& view : views) {
    if (!view.id.empty()) known.insert({view.id, {}});
  }
  return known;
}

size_t count_existing(const std::vector<SentinelView>& views, size_t named) {
  size_t count = std::max(named, known_sentinels(views).size());
  // A sentinel that does not report its id knows itself, too.
  for (const SentinelView& view : views) count = std::max(count, view.others.size() + 1);
  return count;
}

Error no_sentinel(const Endpoint& server) {
  return {ErrorKind::config,
          util::format("{} is no Sentinel: use {}", server.label(), url_of_kind(server, "")),
          Retry::never, Answered::yes, Cause::other_kind};
}

Error login_refused(Error error, const Endpoint& server) {
  if (error.kind == ErrorKind::denied && error.cause == Cause::other) {
    error.text += util::format("; if {} is no Sentinel, but the server itself: use {}",
                               server.label(), url_of_kind(server, ""));
  }
  return error;
}

Sentinels::Sentinels(std::vector<Server> sentinels, std::string master)
    : votes_(sentinels.size()),
      views_(sentinels.size()),
      conduct_(sentinels.size()),
      named_(sentinels.size()),
      in_question_(sentinels.size()),
      master_(std::move(master)),
      label_(joined_labels(sentinels) + "/" + master_),
      // The other half of the time is for the master.
      vote_timeout_(part_of(sentinels.front().connect_timeout, 2)) {
  sentinels_.reserve(sentinels.size());
  for (Server& sentinel : sentinels) sentinels_.emplace_back(std::move(sentinel));
}

void Sentinels::ask(SentinelQuestion question, Millis patience) {
  question_ = question;
  patience_ = patience;
  vote_deadline_.reset();
  majority_took_.reset();
  in_question_ = named_;
  Batch questions{{"SENTINEL", "MYID"}, {"SENTINEL", "SENTINELS", master_}};
  if (question == SentinelQuestion::failover) questions.push_back({"SENTINEL", "MASTER", master_});
  questions.push_back({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_});
  questions_ = std::move(questions);
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    // The last question was decided without this sentinel; its answer may have come since.
    if (std::holds_alternative<NoAnswer>(votes_[i]) && sentinels_[i].settle()) {
      (void)sentinels_[i].take_batch();
    }
    votes_[i] = NoAnswer{};
    views_[i] = {};
    if (is_asked(i)) ask_one(i);
  }
}

// A sentinel may still be answering the question about the master, or be connecting for it, while
// the others have elected that master, and it has answered.
void Sentinels::ask_one(size_t i) {
  if (question_ == SentinelQuestion::failover) {
    sentinels_[i].start_behind(questions_);
  } else {
    sentinels_[i].start_batch(questions_);
  }
}

// Asks the sentinels that the others know, but the URL does not name. A sentinel that cannot be
// reached, or does not accept the password or certificate, counts as silent.
void Sentinels::ask_announced() {
  constexpr size_t kMost = 32;
  for (const auto& [id, known] : known_sentinels(views_)) {
    const auto answered = [&, &its_id = id](const SentinelView& view) { return view.id == its_id; };
    if (known.address.host.empty() || std::any_of(views_.begin(), views_.end(), answered)) continue;
    const auto same = [&, &at = known.address](const Connection& one) {
      return one.server().host == at.host && one.server().port == at.port;
    };
    if (std::any_of(sentinels_.begin(), sentinels_.end(), same)) continue;
    if (sentinels_.size() >= named_ + kMost) break;
    sentinels_.emplace_back(server_at(known.address, sentinels_.front().server()));
    votes_.emplace_back(NoAnswer{});
    views_.emplace_back();
    conduct_.emplace_back();
  }
  in_question_ = sentinels_.size();
  for (size_t i = named_; i < in_question_; ++i) ask_one(i);
}

// One vote for each sentinel, even if it has several names.
std::vector<SentinelVote> Sentinels::votes() const {
  std::vector<SentinelVote> votes(votes_.begin(),
                                  votes_.begin() + static_cast<std::ptrdiff_t>(in_question_));
  for (size_t i = 0; i < votes.size(); ++i) {
    for (size_t before = 0; before < i; ++before) {
      if (!views_[i].id.empty() && views_[before].id == views_[i].id) votes[i] = NoAnswer{};
    }
  }
  return votes;
}

std::optional<HostPort> Sentinels::elected() const {
  const auto abstaining =
      std::count_if(votes_.begin(), votes_.begin() + static_cast<std::ptrdiff_t>(named_),
                    [](const auto& vote) { return std::holds_alternative<UnknownMaster>(vote); });
  return elect(votes(), count_existing(views_, named_ - static_cast<size_t>(abstaining)));
}

void Sentinels::wants(std::vector<pollfd>& out) const {
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i)) sentinels_[i].wants(out);
  }
}

TimePoint Sentinels::due() const {
  TimePoint earliest = vote_deadline_.value_or(TimePoint::min());
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i)) earliest = std::min(earliest, sentinels_[i].due());
  }
  return earliest;
}

bool Sentinels::advance(TimePoint now) {
  if (!vote_deadline_) {
    asked_ = now;
    vote_deadline_ = now + vote_timeout_;
  }
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i) && sentinels_[i].advance(now)) read_answer(i, now);
  }
  const bool has_elected = elected().has_value();
  const bool waited = all_answered() || now >= asked_ + vote_timeout_ / 4;
  if (!has_elected && waited && in_question_ == named_) {
    ask_announced();
    for (size_t i = named_; i < in_question_; ++i) {
      if (is_asked(i) && sentinels_[i].advance(now)) read_answer(i, now);
    }
  }
  if (has_elected && question_ == SentinelQuestion::master) return true;
  if (has_elected) {
    majority_took_ = majority_took_.value_or(now - asked_);
    vote_deadline_ = asked_;
    for (size_t i = 0; i < in_question_; ++i) {
      if (is_asked(i)) vote_deadline_ = std::max(*vote_deadline_, awaited_until(i));
    }
  }
  const bool over = all_answered() || now >= *vote_deadline_;
  for (size_t i = 0; over && has_elected && i < in_question_; ++i) {
    if (is_asked(i)) conduct_[i].let_pass = true;
  }
  return over;
}

// Until when a check for a failover waits for this sentinel, which the majority does not need. If
// it let an earlier check pass, it is probably dead, and would delay each grant and release.
TimePoint Sentinels::awaited_until(size_t i) const {
  const Conduct& conduct = conduct_[i];
  const TimePoint latest = asked_ + patience_;
  if (conduct.let_pass) return asked_;
  if (conduct.failing_over) return latest;
  const Nanos usual = conduct.took ? std::max<Nanos>(kLeaderTime, kLeaderTimes * *conduct.took)
                                   : Nanos(kFirstAnswerTime);
  const TimePoint alone =
      std::max(asked_, sentinels_[i].alive_at()) + std::min<Nanos>(usual, vote_timeout_);
  const TimePoint as_the_majority = asked_ + (1 + kLeaderTimes) * *majority_took_;
  return std::min(latest, std::max(alone, as_the_majority));
}

void Sentinels::read_answer(size_t i, TimePoint now) {
  const auto replies = sentinels_[i].take_batch();
  for (const auto& reply : replies) {
    if (reply) continue;
    votes_[i] = login_refused(reply.error(), sentinels_[i].server());
    return;
  }
  const redisReply& id = **replies[0];
  views_[i] = {id.type == REDIS_REPLY_STRING ? std::string(text_of(id)) : "",
               read_others(**replies[1])};
  votes_[i] = vote_in(sentinels_[i], replies);
  conduct_[i].took = now - asked_;
  if (question_ == SentinelQuestion::master) return;
  const auto* named = std::get_if<NamedMaster>(&votes_[i]);
  conduct_[i].failing_over = named != nullptr && named->failing_over;
}

SentinelVote Sentinels::vote_in(Connection& sentinel,
                                const std::vector<Result<ReplyPtr>>& replies) const {
  const redisReply& answer = **replies.back();
  auto master = address_in(answer);
  if (!master) return vote_without_master(sentinel, answer);
  if (question_ == SentinelQuestion::master) return NamedMaster{*std::move(master)};
  constexpr size_t kState = 2;
  const redisReply& state = **replies[kState];
  if (is_error(state)) return vote_without_master(sentinel, state);
  if (auto named = described(*master, state)) return *std::move(named);
  return Error{
      ErrorKind::unavailable,
      util::format("sentinel {} does not describe the master \"{}\"", sentinel.label(), master_),
      Retry::later};
}

SentinelVote Sentinels::vote_without_master(Connection& sentinel, const redisReply& reply) const {
  if (reply.type == REDIS_REPLY_NIL) return UnknownMaster{};
  if (!is_error(reply)) return unknown_master(sentinel, master_);
  Error error = decode_error(text_of(reply));
  if (error.cause == Cause::missing_command) return no_sentinel(sentinel.server());
  error.text = "sentinel " + sentinel.label() + ": " + redact(sentinel, error.text);
  error.answered = Answered::yes;
  if (error.kind == ErrorKind::unavailable) error.retry = Retry::later;
  return login_refused(std::move(error), sentinel.server());
}

bool Sentinels::all_answered() const {
  for (size_t i = 0; i < in_question_; ++i) {
    if (is_asked(i)) return false;
  }
  return true;
}

Result<HostPort> Sentinels::take() {
  if (auto master = elected()) return *std::move(master);
  return no_majority();
}

Status Sentinels::take_failover(const HostPort& master) const {
  const auto majority = elected();
  if (!majority) return no_majority();
  uint64_t epoch = 0;
  for (const SentinelVote& vote : votes_) {
    const auto* named = std::get_if<NamedMaster>(&vote);
    if (named != nullptr && named->address == master) epoch = std::max(epoch, named->config_epoch);
  }
  for (size_t i = 0; i < votes_.size(); ++i) {
    const auto* named = std::get_if<NamedMaster>(&votes_[i]);
    if (named == nullptr) continue;
    // A sentinel that was cut off may still name a former master.
    const bool behind = named->config_epoch < epoch;
    if (named->failing_over) {
      return Error{ErrorKind::unavailable,
                   util::format("sentinel {}: a failover of {} is in progress",
                                sentinels_[i].label(), address_text(master)),
                   Retry::later};
    }
    if (named->address != master && !behind) {
      return Error{
          ErrorKind::unavailable,
          util::format("sentinel {} names {} as the master and not {}", sentinels_[i].label(),
                       address_text(named->address), address_text(master)),
          Retry::later};
    }
  }
  if (*majority == master) return Done{};
  return Error{ErrorKind::unavailable,
               util::format("the sentinels {} name {} as the master and not {}", label_,
                            address_text(*majority), address_text(master)),
               Retry::later};
}

void Sentinels::drop() {
  for (size_t i = 0; i < sentinels_.size(); ++i) {
    if (is_asked(i)) sentinels_[i].drop();
  }
}

// A wrong password does not correct itself, nor does another kind of server; any other cause may be
// a failover in progress.
Error Sentinels::no_majority() const {
  std::vector<Error> reasons;
  for (size_t i = 0; i < named_; ++i) {
    const auto* error = std::get_if<Error>(&votes_[i]);
    if (error != nullptr) reasons.push_back(*error);
    if (std::holds_alternative<UnknownMaster>(votes_[i])) {
      reasons.push_back(unknown_master(sentinels_[i], master_));
    }
  }
  // Whether the named sentinels without such a reason are no majority.
  const auto decides = [&](auto holds) {
    const auto count = std::count_if(reasons.begin(), reasons.end(), holds);
    return 2 * (named_ - static_cast<size_t>(count)) <= named_;
  };
  const auto permanent = [](const Error& error) { return error.retry == Retry::never; };
  if (decides(permanent)) return *std::find_if(reasons.begin(), reasons.end(), permanent);
  const auto denied = [](const Error& error) { return error.kind == ErrorKind::denied; };
  if (decides(denied)) return *std::find_if(reasons.begin(), reasons.end(), denied);
  Error all{ErrorKind::unavailable, "no majority of the sentinels " + label_ + " names a master",
            Retry::later};
  if (!reasons.empty()) all.text += " (" + reasons.front().text + ")";
  for (const Error& error : reasons) all.answered = std::max(all.answered, error.answered);
  if (auto missing = missing_text(); !missing.empty()) {
    all.text += "; " + missing;
    all.cause = Cause::missing_sentinels;
  }
  for (const Cause cause : {Cause::unknown_host, Cause::unknown_master}) {
    if (decides([&](const Error& error) { return error.cause == cause; })) all.cause = cause;
  }
  return all;
}

// The text if all sentinels that answered name the same master, but too many of those that they
// know do not answer: which sentinels, since when, and how to make the others forget them, which
// sentinels never do by themselves.
std::string Sentinels::missing_text() const {
  std::vector<SentinelVote> answers = votes();
  std::erase_if(answers,
                [](const auto& vote) { return !std::holds_alternative<NamedMaster>(vote); });
  if (!elect(answers, answers.size())) return {};
  std::string missing;
  for (const auto& [id, known] : known_sentinels(views_)) {
    const auto answered = [&, &its_id = id](const SentinelView& view) { return view.id == its_id; };
    if (known.address.host.empty() || std::any_of(views_.begin(), views_.end(), answered)) continue;
    util::append(missing, ", ",
                 util::format("{} (last answered {} ago)", address_text(known.address),
                              util::format_rough_duration(known.silent)));
  }
  if (missing.empty()) return {};
  std::string reset;
  for (size_t i = 0; i < in_question_; ++i) {
    if (!std::holds_alternative<NamedMaster>(votes_[i])) continue;
    util::append(
        reset, "; ",
        redis_cli(sentinels_[i].server(), "SENTINEL RESET " + util::shell_quoted(master_)));
  }
  return util::format(
      "{} of {} name one, and these are known, but do not answer: {}; if they do not exist any "
      "more, make the others forget them, 30 s apart: {}",
      answers.size(), count_existing(views_, named_), missing, reset);
}

class SentinelLink::FailoverCheck final : public lock::Reply<Done> {
 public:
  FailoverCheck(Sentinels& sentinels, HostPort master, Millis patience)
      : sentinels_(sentinels), master_(std::move(master)) {
    sentinels_.start_failover_check(patience);
  }
  ~FailoverCheck() override {
    if (!done_) sentinels_.drop();
  }
  FailoverCheck(const FailoverCheck&) = delete;
  FailoverCheck& operator=(const FailoverCheck&) = delete;

  void wants(std::vector<pollfd>& out) const override { sentinels_.wants(out); }
  TimePoint due() const override { return sentinels_.due(); }
  Answered answered() const override { return Answered::yes; }
  bool advance(TimePoint now) override {
    done_ = done_ || sentinels_.advance(now);
    return done_;
  }
  Result<Done> take() override {
    Status status = sentinels_.take_failover(master_);
    if (status) return status;
    Error why = std::move(status).error();
    why.answered = Answered::yes;
    return why;
  }

 private:
  Sentinels& sentinels_;
  HostPort master_;
  bool done_ = false;
};

SentinelLink::SentinelLink(Sentinels sentinels, Server master)
    : sentinels_(std::move(sentinels)),
      master_(std::move(master)),
      database_(master_.db == 0 ? "" : "/" + std::to_string(master_.db)) {
  master_.role = Role::master;
}

void SentinelLink::start_batch(Batch batch) {
  if (phase_ != SentinelPhase::idle && phase_ != SentinelPhase::ended) drop();
  batch_ = std::move(batch);
  replies_.clear();
  elected_ = false;
  asked_.reset();
  sentinels_.start();
  phase_ = SentinelPhase::asking;
}

// The sentinels are asked again only before rlock believes a late reply.
void SentinelLink::follow(const std::vector<std::string>& words) {
  batch_ = {words};
  replies_.clear();
  connection_->follow(words);
  phase_ = SentinelPhase::talking;
}

bool SentinelLink::advance(TimePoint now) {
  if (!asked_) asked_ = now;
  if (phase_ == SentinelPhase::asking && sentinels_.advance(now)) {
    auto master = sentinels_.take();
    if (master) {
      handle_elected(*std::move(master));
    } else {
      end(std::move(master).error());
    }
  }
  if (phase_ == SentinelPhase::talking && connection_->advance(now)) handle_replies(now);
  if (phase_ == SentinelPhase::confirming && sentinels_.advance(now)) {
    handle_confirmed(sentinels_.take());
  }
  return phase_ == SentinelPhase::ended || phase_ == SentinelPhase::idle;
}

bool SentinelLink::is_master(const HostPort& address) const {
  return connection_ && connection_->server().host == address.host &&
         connection_->server().port == address.port;
}

void SentinelLink::handle_elected(HostPort master) {
  if (!is_master(master)) {
    master_.host = std::move(master.host);
    master_.port = master.port;
    connection_.emplace(master_);
  }
  connection_->start_batch(batch_);
  elected_ = true;
  phase_ = SentinelPhase::talking;
}

void SentinelLink::handle_replies(TimePoint now) {
  replies_ = connection_->take_batch();
  phase_ = SentinelPhase::ended;
  const bool failed =
      std::none_of(replies_.begin(), replies_.end(), [](const auto& reply) { return bool(reply); });
  if (failed || now - *asked_ < kVoteLife) return;
  sentinels_.start();
  phase_ = SentinelPhase::confirming;
}

void SentinelLink::handle_confirmed(const Result<HostPort>& master) {
  if (!master) return end(master.error());
  if (is_master(*master)) {
    phase_ = SentinelPhase::ended;
    return;
  }
  end({ErrorKind::unavailable,
       connection_->node() + " answered after the sentinels had replaced it as the master",
       Retry::later});
}

lock::InFlight<Done> SentinelLink::check_failover(Millis patience) {
  return std::make_unique<FailoverCheck>(sentinels_, HostPort{master_.host, master_.port},
                                         patience);
}

void SentinelLink::end(Error why) {
  replies_ = failed_batch(batch_.size(), why);
  phase_ = SentinelPhase::ended;
}

std::vector<Result<ReplyPtr>> SentinelLink::take_batch() {
  phase_ = SentinelPhase::idle;
  return std::exchange(replies_, {});
}

void SentinelLink::wants(std::vector<pollfd>& out) const {
  if (is_voting()) sentinels_.wants(out);
  if (phase_ == SentinelPhase::talking) connection_->wants(out);
}

TimePoint SentinelLink::due() const {
  if (is_voting()) return sentinels_.due();
  if (phase_ == SentinelPhase::talking) return connection_->due();
  return phase_ == SentinelPhase::idle ? TimePoint::max() : TimePoint::min();
}

void SentinelLink::drop() {
  phase_ = SentinelPhase::idle;
  sentinels_.drop();
  if (connection_) connection_->drop();
}

}  // namespace rlock::redis
