#include "cli/options/options.hpp"

#include <algorithm>
#include <iterator>

#include "util/table.hpp"

namespace rlock::cli {
namespace {

constexpr unsigned kRun = bit(CommandId::run);
constexpr unsigned kAcquire = bit(CommandId::acquire);
constexpr unsigned kRenew = bit(CommandId::renew);
constexpr unsigned kRelease = bit(CommandId::release);
constexpr unsigned kStatus = bit(CommandId::status);
constexpr unsigned kQueue = bit(CommandId::queue);
constexpr unsigned kWatch = bit(CommandId::watch);
constexpr unsigned kForce = bit(CommandId::force_unlock);
constexpr unsigned kClose = bit(CommandId::close);
constexpr unsigned kOpen = bit(CommandId::open);
constexpr unsigned kHistory = bit(CommandId::history);
constexpr unsigned kForget = bit(CommandId::forget);
constexpr unsigned kMetrics = bit(CommandId::metrics);
constexpr unsigned kCheck = bit(CommandId::check);
constexpr unsigned kDoctor = bit(CommandId::doctor);
constexpr unsigned kStopLocal = bit(CommandId::stop_local);

// The greatest fencing token that is exact as a JSON integer.
constexpr uint64_t kGreatestToken = (uint64_t{1} << 53) - 1;
constexpr uint64_t kDay = 24 * 60 * 60 * uint64_t{1000};

constexpr OptionHead option(Opt id, std::string_view name, std::string_view metavar,
                            std::string_view needed_by, unsigned commands,
                            OptionExtras extras = {}) {
  return {extras, id, name, metavar, needed_by, commands, Section::command};
}
// A row of the general section: for every command, unless `commands` names some.
constexpr OptionHead general(Opt id, std::string_view name, std::string_view metavar,
                             std::string_view needed_by, OptionExtras extras = {},
                             unsigned commands = kEveryCommand) {
  return {extras, id, name, metavar, needed_by, commands, Section::general};
}

// In the order of Opt.
constexpr OptionRow kOptions[] = {
    // ---- of run, most of which acquire has too ----

    {option(Opt::nonblock, "nonblock", "", "COMING FROM FLOCK", kRun | kAcquire,
            {.group = Group::waiting, .letter = 'n', .common = true}),
     "exit with 75 immediately if the lock is busy",
     "For a job that many hosts start together and only one should run: the others skip it. With "
     "--quiet a skip prints nothing. A host whose clock is behind may still run the job a second "
     "time: --once-per and --once-within prevent that. WAITING FOR THE SERVER says what happens if "
     "the server is unavailable. This option cannot be combined with a --wait longer than 0."},
    {option(Opt::wait, "wait", "DUR", "A DEPLOY FROM CI", kRun | kAcquire | kClose,
            {.group = Group::waiting,
             .letter = 'w',
             .fallback = "forever",
             .common = true,
             .in_file = true}),
     "wait at most DUR, then exit with 75",
     "For a job that is better not run than run late. This option limits how long rlock waits for "
     "the lock, and for a server that is unavailable: see WAITING FOR THE SERVER. To limit how "
     "long the command runs, use --max-run. 0 is the same as -n, and forever undoes a wait in "
     "rlock.toml."},
    {option(Opt::conflict_exit_code, "conflict-exit-code", "N", "COMING FROM FLOCK",
            kRun | kAcquire,
            {.group = Group::waiting, .letter = 'E', .fallback = "75", .most = 255}),
     "exit with N (0-255) instead of 75 if the lock is busy, as with flock",
     "This is short for --exit-code busy=N. It cannot be combined with busy= of --exit-code."},
    {option(Opt::exit_code, "exit-code", "WHAT=N", "A DEPLOY FROM CI", kRun | kAcquire,
            {.group = Group::waiting,
             .fallback = "busy=75, done=0, superseded=75, failures=75, unavailable=69, denied=77, "
                         "config=78",
             .demand = Demand::free}),
     "exit with N if the command did not run because of WHAT",
     "For a caller that has to know why the command did not run: choose codes from 0 to 255 that "
     "the command itself never returns, separated by commas. busy is for a busy lock (--nonblock, "
     "--wait and --max-queue), done for work that was done before (--once, --once-per and "
     "--once-within), superseded for a run that a newer one supersedes (--supersede; do not try "
     "again), failures for failed runs that are not repeated (--max-failures), and unavailable, "
     "denied and config replace 69, 77 and 78. With denied=0 or config=0 the caller does not "
     "notice that no run can work: rlock config and rlock doctor then say why. CALLERS in rlock(1) "
     "says which codes mean something to other programs."},
    {option(Opt::shell_text, "", "TEXT", "COMING FROM FLOCK", kRun,
            {.group = Group::processes, .letter = 'c', .common = true, .demand = Demand::given}),
     "run TEXT with $SHELL (or /bin/sh, if it is not set) instead of a COMMAND",
     "For pipes and redirections under the lock. TEXT is one word: quote it. As with sh -c, the "
     "exit code is that of the last command, unless TEXT begins with set -e. This option cannot "
     "be combined with a COMMAND after --."},
    {option(Opt::ttl, "ttl", "DUR", "A HOT STANDBY, OR LEADER", kRun | kAcquire | kRenew | kDoctor,
            {.group = Group::lease,
             .letter = 't',
             .fallback = "60s",
             .common = true,
             .in_file = true,
             .least = 1000}),
     "length of the lease, at least 1s"},
    {option(Opt::no_renew, "no-renew", "", "report: one lease must outlast any outage", kRun,
            {.group = Group::lease}),
     "do not renew the lease: stop the command before the lease expires (after 52s of 60s), exit "
     "with 76",
     "For a command that must not hold the lock for longer than one lease, even if it hangs. "
     "Choose a --ttl that is long enough for the command, --kill-after and a margin. To limit the "
     "command while rlock renews the lease, use --max-run."},
    {option(Opt::max_run, "max-run", "DUR", "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::processes, .fallback = "none", .common = true}),
     "stop the command after DUR and exit with 124",
     "Prevents a hanging command from holding the lock forever. The time begins when the command "
     "starts. 0 means no limit. rlock sends TERM to the command and its descendants, and KILL when "
     "--kill-after expires. It holds the lock until all of them are gone, so rlock itself may take "
     "longer: see rlock-guarantees(7)."},
    {option(Opt::kill_after, "kill-after", "DUR", "report: command killed while it cleans up",
            kRun | kDoctor,
            {.group = Group::processes,
             .letter = 'k',
             .fallback = "5s, or a sixth of the ttl if that is less",
             .in_file = true}),
     "time from TERM to KILL when rlock stops the command",
     "Gives the command time to clean up after --max-run, a lost lease or force-unlock. After a "
     "lost lease the time may be shorter, because rlock sends KILL before the lease can expire on "
     "the server. If the command needs longer, use a longer --ttl."},
    {option(Opt::stop_after, "stop-after", "DUR", "A HOT STANDBY, OR LEADER", kRun,
            {.group = Group::processes, .fallback = "none"}),
     "after a TERM to rlock, kill the command if it runs for longer than DUR",
     "For a command that may ignore TERM or clean up for too long. The time begins when another "
     "process sends TERM, INT or QUIT to rlock, which passes it on. rlock then kills the command "
     "and everything that it started, and releases the lock. Without this option it waits until "
     "the command exits. Under systemd, use less than TimeoutStopSec=: after that time systemd "
     "kills rlock, and the lock stays held until its lease expires. 0 means no limit."},
    {option(Opt::on_lost, "on-lost", "terminate|ignore",
            "report: long job killed because the server failed", kRun,
            {.group = Group::lease, .fallback = "terminate"}),
     "if the lease is lost: terminate the command, or ignore the loss and print a warning",
     "With ignore, another run may hold the lock while this command still runs. Choose ignore only "
     "if that is harmless, or if the resource checks RLOCK_TOKEN: see rlock-guarantees(7)."},
    {option(Opt::min_hold, "min-hold", "DUR", "AT MOST THREE STARTS AN HOUR", kRun | kAcquire,
            {.group = Group::lease, .fallback = "0"}),
     "keep the lock for at least DUR, even if the command exits sooner",
     "For a quick job that many hosts start by their clocks, together with --nonblock: a host "
     "whose clock is behind, or that starts after the job is done, then still finds the lock busy. "
     "This cool-down also applies if the command fails or its host dies, but not if the command "
     "cannot be executed. rlock status shows the cool-down, and force-unlock cancels it."},
    {option(Opt::slots, "slots", "N", "A POOL OF FOUR TEST DATABASES", kRun | kAcquire,
            {.group = Group::lease, .fallback = "1", .common = true, .least = 1, .most = 1024}),
     "allow up to N holders",
     "Limits how many instances of a job run at the same time. Give the same N everywhere, at "
     "most 1024: if runs give different N, the smallest applies. The command finds its slot in "
     "RLOCK_SLOT: a number from 1 to N that no other live holder has. This option cannot be "
     "combined with --shared, several servers or another --format."},
    {option(Opt::shared, "shared", "", "FREEZE OF AN ENVIRONMENT", kRun | kAcquire,
            {.group = Group::lease, .letter = 's', .common = true}),
     "acquire the lock as shared: any number of shared holders, but no exclusive one",
     "For readers that may run at the same time. Writers acquire the lock without this option. "
     "Waiters acquire it in order, so later readers do not overtake a waiting writer. The "
     "restrictions of --slots apply."},
    {option(Opt::max_queue, "max-queue", "N", "report: runs pile up behind a slow one",
            kRun | kAcquire, {.group = Group::waiting, .fallback = "none", .most = UINT32_MAX}),
     "exit with 75 immediately if N runs are already waiting",
     "Keeps runs from piling up behind a slow one. With 1, a single run waits and all later ones "
     "exit."},
    {option(Opt::ticket, "ticket", "FILE", "A CALLER WITH A TIME LIMIT", kRun | kAcquire,
            {.group = Group::waiting, .demand = Demand::name}),
     "after --wait has expired, keep the position in the queue in FILE",
     "For a caller with a time limit, such as a CI step or a coding agent, that repeats its call: "
     "if --wait expires (75), the next call with the same FILE within 15 minutes is ahead of all "
     "runs that first asked later. A call that is away is not in the queue, and no run waits for "
     "it. rlock empties FILE at the start of each call. FILE must be this user's own, is readable "
     "by nobody else, and counts on this host for this NAME only. If another rlock uses it, the "
     "position is the last. This option cannot be combined with --nonblock, --supersede or "
     "--urgent."},
    {option(Opt::once, "once", "KEY", "A MIGRATION THAT ONE REPLICA DOES", kRun | kForget,
            {.group = Group::once, .common = true, .demand = Demand::given}),
     "skip the command and exit with 0 if a run of NAME with this KEY has succeeded",
     "For work that several processes start, such as a migration at the start of each replica: one "
     "runs it, and the others wait and then continue. KEY identifies the work, for example a "
     "commit: 1 to 200 bytes, without {, } and control characters. An empty KEY is an error, "
     "because a variable that is not set expands to one. See DONE ONCE."},
    {option(Opt::once_per, "once-per", "minute|15m|hour|6h|day|week|month",
            "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::once, .common = true, .examples = true, .demand = Demand::free}),
     "run the command once in each calendar period",
     "For a crontab line on several hosts: one of them runs the command, and the others wait until "
     "it is done and exit with 0. The period is that in which a host begins to ask for the lock. "
     "cron starts jobs by the same clock, so hosts whose clocks differ by some seconds still agree "
     "on it. See DONE ONCE, also for time zones."},
    {option(Opt::once_within, "once-within", "DUR", "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::once, .least = 1, .most = 366 * kDay}),
     "skip the command and exit with 0 if a run of NAME succeeded within DUR",
     "For timers that have no calendar, have jitter or start late: choose half of the timer's "
     "period, at most 366d. The clocks of the hosts do not matter. See DONE ONCE."},
    {option(Opt::max_failures, "max-failures", "N", "A JOB THAT CATCHES UP, AS WITH ANACRON", kRun,
            {.group = Group::once, .fallback = "none", .least = 1, .most = UINT32_MAX}),
     "with --once, --once-per or --once-within: after N failed runs, exit with 75",
     "Without this option each waiter in turn retries what the run before it failed to do. rlock "
     "counts the failures of runs with this option since the last success with this KEY or in this "
     "period. rlock does not count a command that could not be started, a command that returned 0 "
     "after rlock was asked to stop, or a run whose lock an operator broke."},
    {option(Opt::supersede, "supersede", "N", "A DEPLOY FROM CI", kRun | kAcquire,
            {.group = Group::waiting, .value_optional = true, .most = kGreatestToken}),
     "keep only the newest waiter that has this option",
     "For deploys: after a long deploy, only the newest commit is deployed, and the waiters in "
     "between exit with 75. The newest has the greatest N, such as the pipeline number, or arrived "
     "last if there is no N. A newer run takes over the position of the run that it replaces. The "
     "server remembers the greatest N that was granted the lock, for 30 days or until rlock forget "
     "NAME, so that an old deploy that is retried later exits with 75, too. A run with that same N "
     "may run again. This option never affects the current holder, replaces no waiter with "
     "--nonblock, and works with one server only."},
    {option(Opt::while_closed, "while-closed", "", "FREEZE OF AN ENVIRONMENT", kRun | kAcquire,
            {.group = Group::waiting}),
     "acquire the lock even if it is closed (rlock close)",
     "For work that must run during a freeze, such as a fix. While the lock is closed, such a run "
     "waits only for current holders, and for earlier runs with this option. This option works "
     "with one server only."},
    {option(Opt::urgent, "urgent", "DUR", "report: urgent fix waits behind routine jobs",
            kRun | kAcquire,
            {.group = Group::waiting, .value_optional = true, .least = 1, .most = kDay}),
     "queue as if this run had arrived DUR earlier (1h without DUR, at most 24h)",
     "For work that should not wait behind routine runs, such as an urgent fix. An ordinary waiter "
     "is overtaken only by urgent runs that arrive at most DUR after it, so no run waits forever. "
     "This option never affects the current holder. Together with --supersede it needs a number "
     "there: --supersede=N."},
    {option(Opt::wait_descendants, "wait-descendants", "", "COMING FROM FLOCK", kRun,
            {.group = Group::processes, .common = true}),
     "hold the lock until every process that the command started has exited",
     "For a command that returns before its work is done. Without this option rlock releases the "
     "lock when the command itself exits, and leftover processes keep running without the lock."},
    {option(Opt::contain, "contain", "user", "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::processes, .value_optional = true, .in_file = true}),
     "run the command in its own pid namespace",
     "For a command whose processes must all be gone after the run, whoever owns them, and even if "
     "rlock and its guard are killed: the kernel kills everything in the namespace. --contain "
     "needs root, and --contain=user works without, but changes who seems to own the files of "
     "others: do not use it for a backup. rlock doctor says which of the two works on this host, "
     "and rlock-guarantees(7) what else the command sees."},
    {option(Opt::format, "format", "native|plain|redisson", "COMING FROM SET NX EX",
            kRun | kAcquire | kRenew | kRelease | kStatus | kWatch | kForce,
            {.group = Group::storage, .fallback = "native"}),
     "how the lock is stored: as rlock does (native); as redsync, redis-py and node-redlock do "
     "(plain); or as Redisson does (redisson). With plain and redisson, NAME is the key itself",
     "To share a lock with a program that uses one of these libraries, use plain or redisson. Such "
     "locks have no queue and no fencing token, and several options do not work with them: see "
     "rlock-formats(7)."},
    {option(Opt::fail_open, "fail-open", "DUR", "report: backup skipped because the server failed",
            kRun, {.group = Group::waiting, .value_optional = true, .in_file = true, .least = 1}),
     "if no server answers for DUR, warn and run the command without the lock",
     "Only for a job that is better run twice than not at all. Without DUR rlock decides after "
     "--connect-timeout, whatever --wait says. rlock warns again after the command, which finds "
     "RLOCK_UNLOCKED in its environment instead of RLOCK_TOKEN. If a server "
     "rejects the login or is not ready, it has answered, so the command does not run. Neither "
     "does it after an error in the configuration, such as a host name that does not exist: see 69 "
     "and 78 in EXIT STATUS of rlock(1)."},
    {option(Opt::hide_command, "hide-command", "", "report: secrets in the stored command line",
            kRun | kAcquire, {.group = Group::output, .in_file = true}),
     "do not store the command line",
     "For a command whose arguments others must not see. Without this option, status shows its "
     "first 200 bytes to them. rlock masks passwords in URLs, values of --password, --token and "
     "--secret, of variables that end in PASSWORD, _TOKEN, _SECRET or _KEY, bearer tokens and "
     "tokens of GitHub and GitLab; it recognises no other secrets. "
     "rlock still stores host, user and pid."},
    {option(Opt::renew_while, "renew-while", "PID", "A BLOCK OF A SCRIPT", kAcquire,
            {.group = Group::lease, .common = true, .least = 1, .most = INT32_MAX}),
     "renew the lease in the background while the process PID lives, then release the lock",
     "For steps of unknown duration. If the script dies, it does not keep the lock. --ttl is then "
     "the lease that the background process renews, 60s by default."},
    {option(Opt::event_log, "event-log", "FILE", "THE EVENT LOG", kRun,
            {.group = Group::output, .in_file = true, .demand = Demand::name}),
     "append one JSON line to FILE for each event",
     "For logs and monitoring, because run has no --json. Several runs may share one file. If "
     "rlock cannot open or write it, rlock prints a warning, and the command still runs. With "
     "/dev/stderr and --quiet, each line that rlock writes there is JSON. See rlock-formats(7)."},
    {option(Opt::report, "report", "", "report: cron mails too much, or nothing", kRun,
            {.group = Group::output, .in_file = true}),
     "print one line if the command fails, even with --quiet",
     "For a crontab job that is silent unless it fails, together with -q: cron then mails only "
     "failures, with the host, how the command exited and how long it ran. If rlock stopped the "
     "command, or the lock was lost, rlock prints a line even without this option."},
    {option(Opt::history_rows, "history", "N", "report: a lock for each of 100,000 records", kRun,
            {.group = Group::storage, .fallback = "100", .in_file = true, .most = 1000}),
     "keep N rows (0-1000) of NAME's history from this run on",
     "Use a small number if you have very many names, or a lock that is used every second, and 0 "
     "to keep runs out of the history. The latest run decides. The counters of metrics, and the "
     "last success and failure in status and check, do not depend on this option."},

    // ---- of the commands that show locks or change a held one ----

    {option(Opt::owner, "owner", "ID", "A SCRIPT THAT LOCKS ITSELF",
            kRenew | kRelease | kStatus | kForce, {.common = true, .demand = Demand::free}),
     "only this owner"},
    {option(Opt::token, "token", "N", "report: unlock hit a newer holder", kRenew | kForce,
            {.common = true, .most = kGreatestToken}),
     "only the holder with this fencing token"},
    {option(Opt::all, "all", "", "report: unlock all slots of a pool", kForce | kStatus,
            {.common = true}),
     "break the lock of every holder",
     "To break a lock that has several holders (shared or with --slots), use this option, --owner "
     "or --token."},
    {option(Opt::now, "now", "", "A LOCK IS STUCK AT 3 A.M.", kForce, {.common = true}),
     "free the lock immediately: the old and the next command may overlap",
     "Use it only if you know that the holder's host is dead, or if an overlap is harmless. "
     "Without this option the next holder starts when the old one has confirmed that its command "
     "has exited, or when the lease expires."},
    {option(Opt::remove, "remove", "OWNER", "report: waiter that nobody needs any more", kQueue,
            {.common = true, .demand = Demand::free}),
     "remove this waiter: its owner id, the first characters of it, or its position",
     "The waiter's rlock exits with 75 and reports who removed it. The listing shows positions and "
     "owner ids. A number of up to six digits is a position. If several owner ids begin with "
     "OWNER, rlock removes none and exits with 64. Positions change as the queue moves, so use the "
     "owner id in a script. If the owner holds the lock already, rlock does not remove it and "
     "exits with 75: use force-unlock."},
    {option(Opt::first, "first", "OWNER", "report: urgent fix waits behind routine jobs", kQueue,
            {.common = true, .demand = Demand::free}),
     "move this waiter to the head of the queue: its owner id, the first characters of it, or its "
     "position",
     "For a run that cannot wait. A later run can ask for such a position itself with --urgent. "
     "The listing and the history show who moved the waiter. This option never affects the current "
     "holder, and while the lock is closed the waiter still waits until the lock opens. OWNER is "
     "as for --remove. This option works with one server only."},
    {option(Opt::runs, "runs", "N", "report: what did the last nights do", kHistory,
            {.letter = 'n', .fallback = "20", .common = true, .least = 1, .most = 1'000'000}),
     "how many runs to show",
     "Rows for skipped runs, for work that was done before, and for close and open stand between "
     "the runs and are not counted. The server keeps 100 rows for each lock, or as many as the "
     "last run's --history says, for 30 "
     "days."},
    {option(Opt::yes, "yes", "", "report: unlock from a script", kForce | kForget,
            {.common = true}),
     "do not ask for confirmation; required when not on a terminal",
     "For scripts. Add --owner or --token, so that the script breaks only the lock of the holder "
     "that it has checked."},
    {option(Opt::strict, "strict", "", "report: script that sets up a server", kDoctor,
            {.common = true}),
     "exit with 1 for a warning, too", "For monitoring, and for scripts that set up a new server."},
    {option(Opt::output, "output", "FILE", "ALERTS", kMetrics,
            {.common = true, .demand = Demand::name}),
     "write to FILE, replacing it as a whole",
     "For a collector that reads FILE. rlock writes a new file and renames it, so that no program "
     "reads half of it. rlock refuses FILE if it exists and is not a regular file. If the server "
     "does not answer, FILE says rlock_up 0."},
    {option(Opt::within, "within", "DUR", "ALERTS", kCheck, {.common = true}),
     "exit with 2 unless a run succeeded within DUR",
     "Use somewhat more than the time between two runs plus the length of a run, for example 26h "
     "for a job that runs each night."},
    {option(Opt::max_held, "max-held", "DUR", "ALERTS", kCheck, {.common = true}),
     "exit with 1 if a run has held the lock for longer than DUR",
     "Detects a command that hangs. To stop such a command, use run --max-run."},
    {option(Opt::max_wait, "max-wait", "DUR", "ALERTS", kCheck, {.common = true}),
     "exit with 1 if a run has waited for longer than DUR",
     "Detects that runs arrive faster than they finish."},
    {option(Opt::max_waiters, "max-waiters", "N", "ALERTS", kCheck,
            {.common = true, .most = UINT32_MAX}),
     "exit with 1 if more than N runs are waiting",
     "Detects a queue that grows. To limit the queue, use run --max-queue."},
    {option(Opt::critical, "critical", "", "ALERTS", kCheck, {.common = true}),
     "exit with 2 instead of 1", "For a job whose failure needs immediate attention."},
    {option(Opt::closed_for, "for", "DUR", "FREEZE OF AN ENVIRONMENT", kClose, {.common = true}),
     "open the lock again after DUR, at most 30d", "This option or --until is required."},
    {option(Opt::until, "until", "TIME", "FREEZE OF AN ENVIRONMENT", kClose,
            {.common = true, .demand = Demand::free}),
     "open the lock again at TIME: 18:00, 2026-11-24T06:00 or, in UTC, 2026-11-24T06:00:00Z",
     "A time without a date means its next occurrence. A time without Z is local. The lock can "
     "stay closed for at most 30 days."},
    {option(Opt::replace, "replace", "", "FREEZE OF AN ENVIRONMENT", kClose),
     "shorten a closure of another user or host, too",
     "Without this option rlock leaves a closure that would end sooner as it is, if another user "
     "or a user of another host closed the lock, and exits with 75. Ask them first."},
    {option(Opt::reason, "reason", "TEXT", "FREEZE OF AN ENVIRONMENT",
            kRun | kAcquire | kQueue | kForce | kClose | kOpen,
            {.group = Group::output, .common = true, .in_file = true, .demand = Demand::free}),
     "free text shown to others in status, queue and messages",
     "Say why the lock is held: give the name of a release or the number of a ticket, for example. "
     "TEXT must not contain a secret. Without this option the reason in a CI job is the address of "
     "the job or its build, from CI_JOB_URL, BUILD_URL, BUILDKITE_BUILD_URL, CIRCLE_BUILD_URL or "
     "GITHUB_RUN_ID; an empty TEXT, or --hide-command, leaves it out."},

    // ---- which server, how to reach it, what to print ----

    {general(Opt::url, "url", "URL", "MANY WORKTREES OF ONE REPOSITORY",
             {.letter = 'u',
              .environment = "RLOCK_URL",
              .common = true,
              .in_file = true,
              .demand = Demand::url}),
     "the server: redis://HOST[:PORT][/DB], rediss:// for TLS, unix:///PATH, local: and others; "
     "give three or more for a quorum",
     "To give several servers, repeat the option, or separate the URLs in one text by white space "
     "or commas. Two servers are not enough, because they cannot form a majority: see "
     "rlock-guarantees(7). There is no default. Do not put a password in a URL on the command "
     "line, because every user of the host can read the command line."},
    {general(Opt::user, "user", "NAME", "report: an ACL user for each program",
             {.environment = "RLOCK_USER", .in_file = true, .demand = Demand::name}),
     "ACL user, instead of the one in the URL",
     "ACCESS in rlock(1) lists the permissions that this user needs."},
    {general(
         Opt::password, "password", "TEXT", "A KUBERNETES CRONJOB",
         {.environment = "RLOCK_PASSWORD, REDISCLI_AUTH", .in_file = true, .demand = Demand::free},
         0),
     "the password itself"},
    {general(Opt::password_file, "password-file", "FILE", "A SYSTEMD TIMER",
             {.environment = "RLOCK_PASSWORD_FILE", .in_file = true, .demand = Demand::name}),
     "read the password from FILE each time rlock connects (RLOCK_PASSWORD contains the password "
     "itself)",
     "For a password that is mounted into a container or changes while rlock runs. rlock does not "
     "use FILE if other users can write to it. RLOCK_PASSWORD and REDISCLI_AUTH in the environment "
     "contain the password itself. Use only one of RLOCK_PASSWORD and RLOCK_PASSWORD_FILE. This "
     "option cannot be combined with --password-command."},
    {general(Opt::password_command, "password-command", "CMD",
             "report: password from a vault that changes",
             {.in_file = true, .demand = Demand::given}),
     "read the password from the first line that CMD prints",
     "For a password that a vault or a cloud service issues. rlock runs CMD with /bin/sh. Do not "
     "write a password into CMD: the list of processes and rlock config show it."},
    {general(Opt::cacert, "cacert", "FILE", "report: server with a private CA",
             {.environment = "RLOCK_CACERT", .in_file = true, .demand = Demand::name}),
     "TLS: trust the CA certificates in FILE, instead of the system's",
     "For a server whose certificate a private certificate authority (CA) has signed. If you have "
     "a folder of CA certificates that openssl rehash has prepared, set SSL_CERT_DIR instead."},
    {general(Opt::cert, "cert", "FILE", "report: server that requires client certificates",
             {.environment = "RLOCK_CERT", .in_file = true, .demand = Demand::name}),
     "TLS: client certificate to present",
     "For a server that requires client certificates (tls-auth-clients)."},
    {general(Opt::key, "key", "FILE", "report: server that requires client certificates",
             {.fallback = "the FILE of --cert",
              .environment = "RLOCK_KEY",
              .in_file = true,
              .demand = Demand::name}),
     "TLS: private key of the client certificate",
     "The key must match the certificate of --cert and must not be encrypted."},
    {general(Opt::sni, "sni", "NAME", "report: TLS through a tunnel",
             {.fallback = "the URL's host",
              .environment = "RLOCK_SNI",
              .in_file = true,
              .demand = Demand::name}),
     "TLS: name to request from the server and to verify in its certificate",
     "For a server behind a tunnel, or for servers that share one certificate."},
    {general(Opt::insecure, "insecure", "", "report: trial of a server without a CA",
             {.environment = "RLOCK_INSECURE", .in_file = true}),
     "TLS: do not verify the server's certificate (prints a warning)",
     "Anyone who controls the network can then read the password and pretend to grant the lock. "
     "Use it only for tests. --cacert is the safe way to accept a certificate of a private CA, and "
     "has no effect together with this option."},
    {general(Opt::prefix, "prefix", "TEXT", "report: several teams share one server",
             {.fallback = "rlock:",
              .environment = "RLOCK_PREFIX",
              .in_file = true,
              .demand = Demand::name}),
     "prefix of the keys on the server",
     "Keeps the locks of several teams or stages apart on one server: locks with different "
     "prefixes do not exclude each other. $, {, } and control characters are not allowed. The ACL "
     "rule of the server must "
     "allow the prefix: see ACCESS in rlock(1)."},
    {general(Opt::connect_timeout, "connect-timeout", "DUR",
             "report: distant server, slow name lookup",
             {.fallback = "2s", .in_file = true, .least = 1}),
     "time limit to reach one server: DNS, connect, TLS and login",
     "Use a longer time for distant servers; one try takes at most 10 s of it. With -n, and for "
     "the commands that show or change "
     "locks, it is also how long rlock tries to reach the server before it exits with 69. A run "
     "that waits tries again and again until --wait expires."},
    {general(Opt::replicas, "replicas", "N", "report: failover forgot a lock",
             {.fallback = "0", .in_file = true, .most = 100},
             kRun | kAcquire | kRenew | kRelease | kDoctor),
     "a grant, a renewal and a release count once N replicas have confirmed them",
     "For a lock that must survive a failover: a lock that was granted is still held after a "
     "failover to a replica that confirmed the grant. If too few replicas confirm a grant, rlock "
     "keeps the lock and starts the command once they do. After 60 s, or when --wait expires, it "
     "exits with 69. A renewal that they do not confirm has failed, so runs stop if their master "
     "is cut off from its replicas. All runs of NAME must have this option: set it in rlock.toml. "
     "N should be one less than the number of replicas: a failover, or an unavailable replica, "
     "then stops no run. rlock doctor checks this. See rlock-guarantees(7), in particular for "
     "replicas that never become master. This option cannot be used with several servers, local: "
     "or --format."},
    {general(Opt::config, "config", "FILE", "report: two servers used by one host",
             {.environment = "RLOCK_CONFIG", .demand = Demand::name}),
     "read only this configuration file, instead of rlock/rlock.toml in ~/.config or /etc",
     "The file must exist. /dev/null turns all configuration files off. See rlock.toml(5)."},
    {general(Opt::json, "json", "", "A POOL OF FOUR TEST DATABASES", {.common = true},
             kEveryCommand & ~(kRun | kMetrics | kCheck | kStopLocal)),
     "print JSON on standard output",
     "For scripts: later versions may add fields, but do not remove any. rlock also prints errors "
     "as JSON on standard output, in addition to the message on standard error. rlock-formats(7) "
     "says where the schemas are. run does not have this option, because standard output belongs "
     "to the command: use --event-log."},
    {general(Opt::quiet, "quiet", "", "A JOB ONCE A DAY ON TEN HOSTS",
             {.letter = 'q', .common = true}),
     "print only errors",
     "For a crontab, because cron mails any output. With run, a busy lock is not an error. With "
     "status this option suppresses the listing, and the exit code shows whether the lock is "
     "held."},
    {general(Opt::verbose, "verbose", "", "report: what does the run wait for", {.letter = 'v'}),
     "report each step on standard error, with the time",
     "Shows what rlock waits for, when it acquires and releases the lock, and which renewals "
     "fail. Successful renewals are in the event log only."},
    {general(Opt::help, "help", "", "report: which option does what",
             {.letter = 'h', .common = true}),
     "print help: -h in short, --help in full",
     "Before a command, it lists the commands, and --help the connection options too."},
    {general(Opt::version, "version", "", "report: two versions share a server", {.letter = 'V'}),
     "print the version"},
};

// The texts of options whose meaning differs between commands.
struct PerCommandText {
  struct {
    Opt id;
    unsigned commands;
    std::string_view fallback = {};
  } of;
  std::string_view help;
  std::string_view manual = {};
};
constexpr PerCommandText kPerCommandTexts[] = {
    {{Opt::ttl, kRun, "60s"},
     "length of the lease, at least 1s",
     "While the command runs, rlock renews the lease every 10s, or after each third of it if that "
     "is less. With a shorter lease the lock is free sooner if this host dies. With a longer "
     "lease the command survives a longer server outage: with 60s every outage of up to 40s, for "
     "example a Sentinel failover with the default down-after-milliseconds, and with 5m of up to "
     "4m38s. That is the lease without the time between two renewals, --kill-after and a margin. "
     "With several servers the maximum is 60s."},
    {{Opt::ttl, kAcquire, "none; with --renew-while 60s"},
     "length of the lease, at least 1s: longer than the steps take from one rlock renew to the "
     "next",
     "This option is required without --renew-while. If a script dies between its steps, the lock "
     "stays held for the rest of the lease. With several servers the maximum is 60s."},
    {{Opt::ttl, kDoctor, "60s"},
     "length of the lease of the runs for which doctor checks the servers",
     "rlock doctor compares which outage such a run survives with the time that Sentinel or a "
     "Cluster takes to replace a master."},
    {{Opt::kill_after, kDoctor, "5s, or a sixth of the ttl if that is less"},
     "time from TERM to KILL of these runs",
     "A longer time leaves less of the lease for an outage."},
    {{Opt::ttl, kRenew, "its previous length"},
     "length of the lease from now on, at least 1s",
     "rlock never shortens a lease: if more than DUR is left, the lease stays as it is. This "
     "option is required with a --format other than native, and with --token to restore a lease."},
    {{Opt::slots, kAcquire, "1"},
     "allow up to N holders; only --json says which slot this one has",
     "acquire does not set RLOCK_SLOT, and the owner id does not contain the slot: read both from "
     "--json, as rlock-recipes(7) shows. rlock-run(1) says more."},
    {{Opt::exit_code, kAcquire, "busy=75, superseded=75, unavailable=69, denied=77, config=78"},
     "exit with N (0-255) if rlock did not acquire the lock because of WHAT",
     "Separate several by commas. busy applies to --nonblock, --wait and --max-queue, and "
     "superseded to --supersede. unavailable, denied and config replace 69, 77 and 78."},
    {{Opt::min_hold, kAcquire, "0"},
     "keep the lock for at least DUR, even if it is released sooner",
     "rlock status shows this cool-down, and force-unlock cancels it."},
    {{Opt::format, kForce, "detected"},
     "how the lock is stored: as rlock does (native); as redsync, redis-py and node-redlock do "
     "(plain); or as Redisson does (redisson). With plain and redisson, NAME is the key itself",
     "Without this option, if NAME is not held in the native format, rlock recognises the lock of "
     "another client by its key: see rlock-formats(7)."},
    {{Opt::format, kStatus | kWatch, "native"},
     "how the locks are stored: as rlock does (native); as redsync, redis-py and node-redlock do "
     "(plain); or as Redisson does (redisson). With plain and redisson, each NAME is the key "
     "itself",
     "rlock cannot list the locks of other clients: with plain and redisson, give at least one "
     "NAME."},
    {{Opt::owner, kRenew | kRelease},
     "the owner id that rlock acquire printed",
     "This option is required. Anyone who knows the id can release the lock."},
    {{Opt::all, kStatus},
     "list free locks, too, instead of counting them",
     "Shows which locks were used within 30 days. This option takes no NAME. A pattern lists free "
     "locks in any case."},
    {{Opt::owner, kStatus},
     "with -q: exit with 0 if this owner holds NAME, with 1 if not",
     "For a script that asks whether it runs under the lock, or whether a later step still does. "
     "Any other exit code means that rlock does not know, so test the code in a case, not with ||. "
     "An empty ID, which is the value of $RLOCK_OWNER outside a run, counts as not held."},
    {{Opt::owner, kForce},
     "break the lock only if this owner holds it",
     "If another owner holds the lock now, rlock changes nothing and exits with 75. This option "
     "cannot be combined with --token or --all."},
    {{Opt::token, kRenew},
     "with --ttl: restore the lease with this fencing token if it expired or the server lost it",
     "For a server that may have lost its data. rlock restores the lease only if no other client "
     "can have held the lock since. acquire --json prints the token."},
    {{Opt::token, kForce},
     "break the lock only if its holder has this fencing token",
     "If the lock has been granted again since, rlock changes nothing and exits with 75. This "
     "option cannot be combined with --owner or --all."},
    {{Opt::once, kForget},
     "forget only what was done with this KEY",
     "Without this option rlock forgets everything that was done under NAME."},
    {{Opt::yes, kForget},
     "do not ask for confirmation; required when not on a terminal",
     "Use it in scripts."},
    {{Opt::hide_command, kAcquire},
     "do not store the command line of PID, or of the caller; status shows its first 200 bytes to "
     "others",
     "rlock still stores host, user and pid."},
    {{Opt::reason, kQueue},
     "with --remove or --first: free text that says why",
     "The removed waiter prints it. For a moved waiter the listing and the history show it."},
    {{Opt::reason, kForce},
     "free text that the holder and rlock history print",
     "Say why you break the lock."},
    {{Opt::wait, kClose, "do not wait"},
     "after closing, wait until no run holds the lock; exit with 75 if one still does after DUR",
     "For work that must not overlap with any run. The lock stays closed even if a run still holds "
     "it when DUR expires."},
    {{Opt::reason, kClose},
     "free text shown to others, at most 200 bytes",
     "Waiting and refused runs print this text."},
    {{Opt::reason, kOpen},
     "free text that rlock history prints, at most 200 bytes",
     "Say why you open the lock before its time."},
    {{Opt::quiet, kStatus}, "print nothing: the exit code shows whether NAME is held"},
    {{Opt::quiet, kCheck}, "print nothing if all is well"},
    {{Opt::quiet, kRun}, "print only errors, and nothing for a skipped run"},
};

static_assert(util::rows_in_order<Opt::version>(kOptions, &OptionRow::id));
static_assert(std::all_of(std::begin(kOptions), std::end(kOptions), [](const OptionRow& row) {
  return (row.kind() == ValueKind::text) == (row.demand != Demand::undecided);
}));

const PerCommandText* own_text(Opt id, CommandId command) {
  for (const PerCommandText& own : kPerCommandTexts) {
    if (own.of.id == id && (own.of.commands & bit(command)) != 0) return &own;
  }
  return nullptr;
}

}  // namespace

std::span<const OptionRow> options() {
  return kOptions;
}
const OptionRow& row_of(Opt id) {
  return kOptions[static_cast<size_t>(id)];
}

OptionText text_for(const OptionRow& row, CommandId command) {
  const PerCommandText* own = own_text(row.id, command);
  OptionText text = own != nullptr ? OptionText{own->help, own->of.fallback, own->manual}
                                   : OptionText{row.help, row.fallback, row.manual};
  for (const CommandRow& earlier : commands()) {
    if (earlier.id == command) break;
    if (!row.applies_to(earlier.id) || own_text(row.id, earlier.id) != own) continue;
    text.same_as = &earlier;
    break;
  }
  return text;
}

const OptionRow* find_option(std::string_view name) {
  for (const OptionRow& row : kOptions) {
    if (!row.name.empty() && row.name == name) return &row;
  }
  return nullptr;
}

const OptionRow* find_option(char letter) {
  for (const OptionRow& row : kOptions) {
    if (row.letter != '\0' && row.letter == letter) return &row;
  }
  return nullptr;
}

std::vector<std::string> spellings(const OptionRow& row) {
  std::vector<std::string> out;
  if (row.letter != '\0') out.push_back({'-', row.letter});
  if (!row.name.empty()) out.push_back("--" + std::string(row.name));
  return out;
}

}  // namespace rlock::cli
