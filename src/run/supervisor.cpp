// Runs in rlock, on the main thread.

#include "run/supervisor.hpp"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "lock/timing.hpp"
#include "run/stage.hpp"
#include "run/stop_requests.hpp"
#include "run/terminal.hpp"
#include "util/boot_timer.hpp"
#include "util/duration.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::run {
namespace {

// The command gets no grace if there is another holder.
bool others_may_run(const lock::Lost& lost) {
  return lost.by || lost.how == lock::LostHow::taken || lost.how == lock::LostHow::full;
}

std::string describe(const LeaseEnd& end) {
  if (end.reported) return to_string(end.reported->how);
  if (end.by_guard) return "the lease expired while rlock was stopped";
  if (end.last_error) return end.last_error->text;
  return "the lease expired";
}

std::string describe(const CommandEnd& end) {
  const auto* exited = std::get_if<Exited>(&end);
  return exited != nullptr ? util::format("exit {}", exited->code)
                           : util::signal_name(std::get<Signaled>(end).signal);
}

// Watches the command, its guard and the renewal thread.
class Supervisor {
 public:
  Supervisor(const RunContext& context, const lock::HeldLock& held_lock, SharedLease& lease,
             Renewer& renewer, std::unique_ptr<Guard>& guard)
      : context_(context),
        plan_(context.plan),
        held_lock_(held_lock),
        state_(context.state),
        lease_(lease),
        renewer_(renewer),
        guard_(guard),
        requests_(context.plan.kill_after) {}

  Result<RunEnd> run() {
    std::optional<util::SignalBlock> held;  // so that a ^Z can be announced before it stops rlock
    if (terminal_.stop_fd() >= 0) held.emplace({SIGTSTP});
    TRY_STATUS(start_guard());
    util::close_inherited_descriptors();  // the guard keeps them for the command
    started_ = BootClock::now();
    // A lease that is due for renewal when the command starts cannot wait for the thread.
    next_thread_try_ = std::min(started_ + timing::kThreadAfter, lease_.next_attempt());
    watch();
    held.reset();
    return conclude();
  }

 private:
  Status start_guard() {
    const Grouping grouping = terminal_.exists() ? Grouping::callers : Grouping::own;
    const auto environment = plan_.environment(held_lock_);
    if (guard_ && guard_->start(grouping, environment)) return Done{};
    guard_.reset();
    TRY(guard_, Guard::fork(context_, environment));
    // If the guard is dead already, tend() finds that it was lost.
    (void)guard_->start(grouping);
    return Done{};
  }

  void watch() {
    while (true) {
      read_signals();
      guard_->read_reports();
      const TimePoint now = BootClock::now();
      tend(now);
      advance(now);
      if (is_over(stage_)) return;
      start_renewal(now);
      if (state_.may_take_precedence && renewer_.running()) renewer_.prefer();
      check_limits(now);
      advance(
          now);  // once the lease is lost, rlock does not wait for processes that it cannot stop
      if (is_over(stage_)) return;
      report_unended(now);
      pollfd fds[4] = {{context_.signals.fd(), POLLIN, 0},
                       {guard_->fd(), guard_->events(), 0},
                       {renewer_.fd(), POLLIN, 0},
                       {terminal_.stop_fd(), POLLIN, 0}};
      if (result_.lost && result_.lost->reported) fds[2].fd = -1;  // known already
      util::poll_until(fds, next_look());
      if (fds[3].revents == 0) continue;
      announce_stop();
      terminal_.stop();
    }
  }

  // Advances through the stages that follow from the present state. Reads the phase once, because
  // the guard may change it at any time.
  void advance(TimePoint now) {
    const CommandPhase phase = state_.phase;
    const bool outlived = phase == CommandPhase::outlived;
    if (outlived && stage_ == Stage::running && !cause_) check_leftovers(now);
    for (Stage stage; (stage = next(stage_, look(phase, now))) != stage_;) {
      const bool begins = std::exchange(stage_, stage) == Stage::running;
      act(begins);
    }
  }

  Look look(CommandPhase phase, TimePoint now) const {
    return {
        .phase = phase,
        .command_ended = state_.command_ended(),
        .cause = cause_,
        .kill_due = now >= kill_due(),
        .contained = is_contained(),
        .renewable = !result_.lost && !state_.lease_over && plan_.watchdog == lock::Watchdog::renew,
        .all_refused = state_.survivors.all_refused(),
        .dying_time_over = now >= give_up_at(),
        .dismissed = dismissed_by_ != 0};
  }

  // `begins`: the command was running until now. Sends signals before messages, because messages
  // take time.
  void act(bool begins) {
    if (stage_ == Stage::terminating) guard_->terminate(spares_nohup_);
    const bool killed = stage_ == Stage::killing;
    if (killed) guard_->end();
    if (killed) killed_at_ = BootClock::now();
    if (is_over(stage_) || !cause_) return;
    if (killed) emit(EventKind::killed, row_of(*cause_).text);
    const bool for_lease = *cause_ == EndCause::lease || *cause_ == EndCause::no_renewal;
    if (begins && for_lease) emit(EventKind::lost, describe(*result_.lost));
    if (!killed) emit(EventKind::terminating, row_of(*cause_).text);
  }

  // The command has exited and left processes: daemons, or workers that must be gone before the
  // next holder starts.
  void check_leftovers(TimePoint now) {
    read_signals();  // a signal to all processes of a service reaches the command at the same time
    const int number = requests_.why_leftovers_end(state_);
    if (number == 0) return;
    spares_nohup_ = number == SIGHUP && !is_contained();
    const bool cancelled = requests_.cancel(state_) != 0;
    end_for(cancelled ? EndCause::cancel : EndCause::died, now + plan_.kill_after);
  }

  bool is_contained() const { return plan_.contain != Contain::no; }

  // When rlock no longer waits for processes that do not die of KILL.
  TimePoint give_up_at() const {
    const TimePoint lease_end = plan_.unlocked ? TimePoint::min() : lease_.view().deadline;
    return std::max(killed_at_ + timing::kLostDyingTime, lease_end);
  }

  // A TERM to rlock and to its guard, as a service manager sends it, is one: what the guard got
  // counts only if rlock got none. Reads the guard's count first, because rlock may get its own
  // meanwhile.
  void read_signals() {
    const uint32_t terms = state_.terms;
    signalfd_siginfo info{};
    while (context_.signals.next(info)) {
      if (info.ssi_signo != SIGCHLD) forward(info);
    }
    if (std::exchange(guard_terms_, terms) == terms || got_term_) return;
    pass_on(SIGTERM, {});
  }

  void forward(const signalfd_siginfo& info) {
    const int number = static_cast<int>(info.ssi_signo);
    const bool stops = asks_to_stop(number);
    if (terminal_.exists() && reached_the_group(info)) {
      result_.asked_to_stop = result_.asked_to_stop || stops;
      if (repeated(number, 0)) return;
      requests_.note_key(number, BootClock::now());
      return guard_->pass_on(number, {getpgrp(), terminal_.foreground()});
    }
    // `kill 0` in the command reached rlock too, so rlock does not pass it on.
    const auto sender = static_cast<pid_t>(info.ssi_pid);
    if (sender != 0 && util::proc_is_ours() && util::descends_from(sender, guard_->pid())) return;
    got_term_ = got_term_ || number == SIGTERM;
    pass_on(number, guard_above(info));
  }

  // Passes on a signal that another process sent to rlock.
  void pass_on(int number, GuardAbove guard) {
    const bool stops = asks_to_stop(number);
    result_.asked_to_stop = result_.asked_to_stop || stops;
    note_request(number);
    if (repeated(number, guard.pid)) return;
    using Kind = GuardOrder::Kind;
    if (guard.reached_all) return guard_->order({Kind::reached, {number}, {}});
    const bool to_all = is_key(number) || plan_.until == ReleaseAfter::descendants;
    guard_->order({to_all ? Kind::signal : Kind::command_signal, {number}, {}});
    // A stopped process cannot act on the request.
    if (stops) guard_->order({Kind::signal, {SIGCONT}, {}});
  }

  // Whether a terminal sends the signal, when a key asks to stop, to all processes: a shell ignores
  // an INT that the child for which it waits has not got.
  static bool is_key(int number) { return number == SIGINT || number == SIGQUIT; }

  // A HUP may ask the command for something other than to stop.
  void note_request(int number) {
    const TimePoint now = BootClock::now();
    if (!requests_.note(number, now) || number == SIGHUP) return;
    unheeded_at_ = now + std::max(plan_.kill_after, timing::kUnheededAfter);
    if (plan_.stop_after) stop_at_ = now + *plan_.stop_after;
  }

  // A signal to all processes of a service reaches the command at the same time as rlock.
  void note_late_signals() {
    signalfd_siginfo info{};
    while (context_.signals.next(info)) {
      result_.asked_to_stop =
          result_.asked_to_stop || asks_to_stop(static_cast<int>(info.ssi_signo));
    }
  }

  // Whether this is the second request to stop: then rlock kills what it is terminating, and if it
  // keeps the lock for processes that it cannot stop, a second TERM or INT makes it exit. In nested
  // runs each guard above passes a request on, and a service manager may send one to all processes;
  // from each of these only a second request counts.
  bool repeated(int number, pid_t passed_on_by) {
    // A service manager may send a HUP after its TERM.
    if (!asks_to_stop(number) || number == SIGHUP) return false;
    const TimePoint now = BootClock::now();
    const TimePoint first = first_requests_.try_emplace(passed_on_by, now).first->second;
    return now >= first + timing::kOneRequest && insists(number);
  }

  // Returns true if this request to stop is no longer meant for the command.
  bool insists(int number) {
    if (has_survivors(state_.phase)) {
      if (number != SIGTERM && number != SIGINT) return false;
      dismissed_by_ = number;
      return true;
    }
    if (!cause_ || !row_of(*cause_).keeps_end) return false;
    kill_at_ = TimePoint::min();
    return true;
  }

  void tend(TimePoint now) {
    guard_->tend(now);
    if (guard_->was_lost() && stage_ == Stage::running) {
      result_.error = Error{ErrorKind::system, guard_->death()};
      end_for(EndCause::no_guard, now);
    }
    follow_stops();
    if (!guard_->has_taken_over()) reap_orphans();
  }

  void follow_stops() {
    const uint32_t stops = state_.stops;
    if (std::exchange(stops_seen_, stops) == stops) return;
    if (!terminal_.left_alone_by(guard_->command())) return;
    announce_stop();
    terminal_.stop_with(guard_->command());
  }

  // A stopped rlock does not renew; its guard watches the time.
  void announce_stop() {
    if (stage_ != Stage::running || result_.lost || !terminates_on_loss() || !terminal_.can_stop())
      return;
    auto left = state_.kill_at() - BootClock::now();
    context_.observer.on(Suspending{std::max(std::chrono::duration_cast<Millis>(left), Millis(0))});
  }

  // As PID 1 rlock inherits orphans, and only reaps them.
  void reap_orphans() {
    siginfo_t info{};
    while (true) {
      info.si_pid = 0;
      if (waitid(P_ALL, 0, &info, kDeadChildren) != 0 || info.si_pid == 0) return;
      if (info.si_pid == guard_->pid()) return;
      waitid(P_PID, static_cast<id_t>(info.si_pid), &info, WEXITED | WNOHANG);
    }
  }

  void start_renewal(TimePoint now) {
    if (!awaits_thread() || now < next_thread_try_) return;
    next_thread_try_ = now + timing::kThreadRetry;
    auto started = renewer_.start();
    if (!started && !cause_) result_.error = std::move(started).error();
  }

  void check_limits(TimePoint now) {
    if (!plan_.unlocked) check_lease(now);
    if (!cause_ && plan_.max_run && now >= started_ + *plan_.max_run) {
      end_for(EndCause::run_limit, now + plan_.kill_after);
    }
    if (now >= stop_at_) {
      if (!cause_) report_kill();
      end_for(EndCause::cancel, std::exchange(stop_at_, TimePoint::max()));
    }
  }

  // Prints lines about processes that do not exit.
  void report_unended(TimePoint now) {
    if (waits_for_survivors()) report_survivors(now);
    if (now >= unheeded_at_) report_unheeded();
  }

  bool waits_for_survivors() const {
    const CommandPhase phase = state_.phase;
    return has_survivors(phase) && keeps_lock(look(phase, BootClock::now()));
  }

  void check_lease(TimePoint now) {
    const SharedLease::View lease = lease_.view();
    if (result_.lost && (result_.lost->reported || !lease.lost)) return;
    // The guard is stopping the command already.
    if (state_.lease_over) {
      return lose({lease.lost, lease.last_error, true}, EndCause::lease, now);
    }
    if (lease.lost) {
      const LeaseEnd why{lease.lost, std::nullopt, false};
      if (!terminates_on_loss()) return lose_and_log(why);
      TimePoint kill_at = others_may_run(*lease.lost) ? now : now + plan_.kill_after;
      return lose(why, EndCause::lease, std::min(kill_at, lease.kill_at));
    }
    const LeaseEnd expired{std::nullopt, lease.last_error, false};
    if (!terminates_on_loss()) {
      // A renewal may still succeed later, and the expiry is worth one warning.
      if (now >= lease.deadline) lose_and_log(expired);
      return;
    }
    if (now < lease.terminate_at) return;
    lose(expired, awaits_thread() ? EndCause::no_renewal : EndCause::lease, lease.kill_at);
  }

  // Stops the command because of its lease. If it is being stopped already, the loss is logged
  // here; otherwise act() logs it, after the signals.
  void lose(const LeaseEnd& why, EndCause cause, TimePoint kill_at) {
    const bool is_second = cause_ && !result_.lost;
    end_for(cause, kill_at);
    if (is_second) return lose_and_log(why);
    result_.lost = why;
  }

  void lose_and_log(const LeaseEnd& why) {
    result_.lost = why;
    emit(EventKind::lost, describe(why));
  }

  // Prints a line immediately and then at growing intervals. A renewal stores the text for others.
  void report_survivors(TimePoint now) {
    if (plan_.record_ending) {
      renewer_.set_record(plan_.record_ending(summarize(state_.survivors)));
    }
    if (now < next_report_) return;
    context_.observer.on(CannotStop{describe(state_.survivors)});
    report_every_ = std::clamp(report_every_ * 2, timing::kFirstReport, timing::kLongestReport);
    next_report_ = now + report_every_;
  }

  // Prints this line once, because the command, or descendants for which rlock waits, may take any
  // time to stop.
  void report_unheeded() {
    const Millis after = std::max(plan_.kill_after, timing::kUnheededAfter);
    unheeded_at_ = TimePoint::max();
    if (cause_ || has_survivors(state_.phase)) return;
    const bool ended = state_.command_ended();
    const pid_t command = ended ? 0 : guard_->command();
    // A nested rlock reports for itself.
    if (!ended && (command <= 0 || util::runs_our_program(command))) return;
    if (plan_.record_ending) {
      const std::string kill =
          command > 0 ? util::format("; to kill it: kill -KILL {}", command) : "";
      renewer_.set_record(plan_.record_ending(
          util::format("still running after {}{}", util::signal_name(requests_.first()), kill)));
    }
    std::optional<Millis> kill_in;
    if (plan_.stop_after) kill_in = *plan_.stop_after - after;
    context_.observer.on(Unheeded{requests_.first(), after, command, kill_in});
  }

  // --stop-after has expired.
  void report_kill() {
    const pid_t command = state_.command_ended() ? 0 : guard_->command();
    context_.observer.on(Unheeded{requests_.first(), *plan_.stop_after, command, Millis(0)});
  }

  // The first cause counts, and the earliest time of KILL.
  void end_for(EndCause cause, TimePoint kill_at) {
    if (!cause_) cause_ = cause;
    kill_at_ = std::min(kill_at_, kill_at);
  }

  // Whatever the cause, the command does not outlive its lease.
  TimePoint kill_due() const {
    return terminates_on_loss() ? std::min(kill_at_, lease_.view().kill_at) : kill_at_;
  }

  bool awaits_thread() const {
    return plan_.watchdog == lock::Watchdog::renew && !renewer_.running();
  }

  TimePoint next_look() const {
    const SharedLease::View lease = lease_.view();
    TimePoint next = std::min({guard_->due(), unheeded_at_, stop_at_,
                               awaits_thread() ? next_thread_try_ : TimePoint::max()});
    if (stage_ == Stage::terminating) next = std::min(next, kill_due());
    if (!cause_ && plan_.max_run) next = std::min(next, started_ + *plan_.max_run);
    if (waits_for_survivors()) {
      next = std::min(next, next_report_);
    } else if (state_.phase == CommandPhase::stuck && stage_ == Stage::killing) {
      next = std::min(next, give_up_at());
    }
    if (result_.lost || plan_.unlocked) return next;
    return std::min(next, terminates_on_loss() ? lease.terminate_at : lease.deadline);
  }

  Result<RunEnd> conclude() {
    if (stage_ != Stage::gave_up) guard_->order({GuardOrder::Kind::dismiss, {}, {}});
    note_late_signals();
    if (int error = state_.start_error; error != 0) {
      return util::system_error("cannot start the command", error);
    }
    take_over_from_guard();
    result_.exec_error = std::max(state_.exec_error.load(), 0);
    result_.started = state_.command != 0 && state_.exec_error == 0 && state_.ran;
    result_.end = command_end();
    const bool stopped =
        cause_ || state_.killed_by() != 0 || std::holds_alternative<Signaled>(result_.end);
    // A contained shell cannot give the terminal back: rlock's group is outside its namespace.
    if (stopped || is_contained()) terminal_.take_back(guard_->command());
    if (stopped) terminal_.restore_modes();
    if (cause_ && !row_of(*cause_).keeps_end) result_.ended_for = cause_;
    result_.left_nothing = is_contained() || (cause_ && state_.exempted.size() == 0);
    if (state_.exempted.size() > 0) context_.observer.on(Exempted{describe(state_.exempted)});
    const bool gave_up = stage_ == Stage::gave_up;
    if (gave_up) result_.survivors = describe(state_.survivors);
    const bool runs_on = gave_up && !state_.command_ended();
    if (result_.started && !runs_on) {
      context_.observer.on(Event{EventKind::exited,
                                 BootClock::now(),
                                 held_lock_.token,
                                 describe(result_.end),
                                 {},
                                 result_.end});
    }
    return std::move(result_);
  }

  // Takes over what the guard did by itself, unless that was done before.
  void take_over_from_guard() {
    if (!cause_ && state_.exec_error == SharedState::kTooLate) {
      result_.lost = LeaseEnd{};
      cause_ = EndCause::lease;
      return;
    }
    if (!state_.lease_over || (cause_ && result_.lost)) return;
    SharedLease::View lease = lease_.view();
    lose_and_log({lease.lost, lease.last_error, true});
    if (cause_) return;
    // Descendants may have exited for which rlock waited.
    const bool by_itself = state_.ended_first && plan_.until == ReleaseAfter::command;
    if (!by_itself) cause_ = EndCause::lease;
  }

  CommandEnd command_end() const {
    switch (state_.end_code) {
      case CLD_EXITED:
        return Exited{state_.end_status};
      case 0:  // nobody could see it: its pid namespace ended with it
        return Signaled{dismissed_by_ != 0 ? dismissed_by_ : SIGKILL};
      default:
        return Signaled{state_.end_status};
    }
  }

  void emit(EventKind kind, std::string_view detail) {
    context_.observer.on(Event{kind, BootClock::now(), held_lock_.token, std::string(detail)});
  }

  bool terminates_on_loss() const { return plan_.on_lost == OnLost::terminate; }

  const RunContext& context_;
  const Plan& plan_;
  const lock::HeldLock& held_lock_;
  SharedState& state_;
  SharedLease& lease_;
  Renewer& renewer_;
  Terminal terminal_ = Terminal::open();
  std::unique_ptr<Guard>& guard_;
  TimePoint started_;
  TimePoint next_thread_try_;
  Stage stage_ = Stage::running;
  std::optional<EndCause> cause_;  // why the command, or its leftover processes, are being stopped
  TimePoint kill_at_ = TimePoint::max();  // when to send KILL, unless the lease expires before
  TimePoint killed_at_;
  uint32_t stops_seen_ = 0;   // stops of the command
  uint32_t guard_terms_ = 0;  // TERMs that the guard has received
  bool got_term_ = false;     // rlock has received one itself
  // When the first TERM, INT or QUIT reached rlock, for each guard of an outer run that passed it
  // on; 0: from other senders, and keys.
  std::map<pid_t, TimePoint> first_requests_;
  StopRequests requests_;
  TimePoint stop_at_ = TimePoint::max();      // when --stop-after expires
  TimePoint unheeded_at_ = TimePoint::max();  // when to report a command that is still running
  bool spares_nohup_ = false;                 // TERM exempts processes that ignore a hangup
  int dismissed_by_ = 0;    // the second TERM or INT, after which rlock does not wait for survivors
  Millis report_every_{0};  // doubles
  TimePoint next_report_;
  RunEnd result_;
};

}  // namespace

Result<RunEnd> supervise(const RunContext& context, const lock::HeldLock& held_lock,
                         SharedLease& lease, std::unique_ptr<Guard>& guard) {
  auto complete = [&] { return context.connections.store.complete_grant(); };
  TRY(auto renewer,
      Renewer::make(context.plan.claim, held_lock,
                    {context.connections.make_store, context.observer, lease, complete}));
  lock::InFlight<lock::GrantReach> only_time;
  if (context.plan.watchdog == lock::Watchdog::none) only_time = complete();
  if (only_time) only_time->advance(BootClock::now());
  TRY_STATUS(context.signals.watch_command());
  auto end = Supervisor(context, held_lock, lease, *renewer, guard).run();
  renewer->stop();  // before the release: a renewal in flight would restore the lock
  return end;
}

}  // namespace rlock::run
