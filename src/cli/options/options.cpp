#include "cli/options/options.hpp"

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
     "Use it for a job that many hosts start together and only one should run: the others skip it. "
     "With --quiet a skip prints nothing. A host whose clock is behind may still run the job a "
     "second time: --once-per and --once-within prevent that. If the server is unavailable, rlock "
     "tries for 2s. With --connect-timeout 1m it skips a busy lock immediately and yet waits for "
     "the server. This option cannot be combined with a --wait longer than 0."},
    {option(Opt::wait, "wait", "DUR", "A DEPLOY FROM CI", kRun | kAcquire | kClose,
            {.group = Group::waiting,
             .letter = 'w',
             .fallback = "forever",
             .common = true,
             .in_file = true}),
     "wait at most DUR, then exit with 75; 0 is the same as -n",
     "Use it if a late start is worse than none. It limits how long rlock waits for the lock and "
     "for the server. --max-run limits how long the command runs. If the server is unavailable, "
     "rlock tries to reach it until this time expires, at least for --connect-timeout. Without "
     "this option it tries for 60 s. Then it exits with 69."},
    {option(Opt::conflict_exit_code, "conflict-exit-code", "N", "COMING FROM FLOCK",
            kRun | kAcquire,
            {.group = Group::waiting, .letter = 'E', .fallback = "75", .most = 255}),
     "exit with N (0-255) instead of 75 if the lock is busy, as with flock",
     "This is short for --exit-code busy=N. It cannot be combined with busy= of --exit-code."},
    {option(Opt::exit_code, "exit-code", "WHAT=N", "A DEPLOY FROM CI", kRun | kAcquire,
            {.group = Group::waiting, .fallback = "busy=75,done=0,superseded=75,failures=75"}),
     "exit with N (0-255) for WHAT: busy, done, superseded or failures; separate several by commas",
     "If a caller has to know why the command did not run, choose codes that the command itself "
     "never returns. busy=N is for a busy lock (--nonblock, --wait and --max-queue), done=N for "
     "work that was done before (--once, --once-per and --once-within), superseded=N for a run "
     "that a newer one replaces (--supersede), and failures=N for failed runs that are not "
     "repeated (--max-failures). After superseded do not try again: the newer run does the work."},
    {option(Opt::shell_text, "", "TEXT", "COMING FROM FLOCK", kRun,
            {.group = Group::processes, .letter = 'c', .common = true}),
     "run TEXT with $SHELL (or /bin/sh, if it is not set) instead of a COMMAND",
     "Use it for pipes and redirections under the lock. TEXT is one word: quote it. This option "
     "cannot be combined with a COMMAND after --."},
    {option(Opt::ttl, "ttl", "DUR", "A HOT STANDBY", kRun | kAcquire | kRenew | kDoctor,
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
     "Use it if a command that hangs must not hold the lock for longer than one lease. Choose a "
     "--ttl that is long enough for the command, --kill-after and a margin. To limit the command "
     "but renew its lease, use --max-run instead."},
    {option(Opt::max_run, "max-run", "DUR", "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::processes, .fallback = "none", .common = true}),
     "stop the command after DUR and exit with 124",
     "Use it so that a command that hangs does not hold the lock forever. The time begins when the "
     "command starts. 0 means no limit. rlock sends TERM to the command and its descendants, and "
     "KILL when --kill-after expires. It holds the lock until all of them are gone, so rlock "
     "itself may take longer: see rlock-guarantees(7)."},
    {option(Opt::kill_after, "kill-after", "DUR", "report: command killed while it cleans up",
            kRun | kDoctor,
            {.group = Group::processes,
             .letter = 'k',
             .fallback = "5s, or a sixth of the ttl if that is less",
             .in_file = true}),
     "time from TERM to KILL when rlock stops the command",
     "Use it to give the command time to clean up after --max-run, a lost lease or force-unlock. "
     "After a lost lease the time may be shorter, because rlock sends KILL before the lease can "
     "expire on the server: a longer time needs a longer --ttl."},
    {option(Opt::stop_after, "stop-after", "DUR", "A HOT STANDBY", kRun,
            {.group = Group::processes, .fallback = "none"}),
     "after a TERM to rlock, kill what runs for longer than DUR",
     "For a command that may ignore TERM or clean up for too long. The time begins when another "
     "process sends TERM, INT or QUIT to rlock, which passes it on. rlock then kills the command "
     "and everything that it started, and releases the lock. Without this option it waits until "
     "the command exits. Under systemd, use less than TimeoutStopSec=, after which the lock would "
     "stay locked until its lease expires. 0 means no limit."},
    {option(Opt::on_lost, "on-lost", "terminate|ignore",
            "report: long job killed because the server failed", kRun,
            {.group = Group::lease, .fallback = "terminate"}),
     "if the lease is lost: terminate the command, or ignore the loss and print a warning",
     "With ignore, another run may hold the lock while this command still runs. Use it only if "
     "that is harmless, or if the resource checks RLOCK_TOKEN: see rlock-guarantees(7)."},
    {option(Opt::min_hold, "min-hold", "DUR", "AT MOST THREE STARTS AN HOUR", kRun | kAcquire,
            {.group = Group::lease, .fallback = "0"}),
     "keep the lock for at least DUR, even if the command exits sooner",
     "Use it with --nonblock for a job that many hosts start by their clocks: a host whose clock "
     "is behind, or that starts after a quick job is done, then finds the lock busy. It also "
     "applies if the command fails or its host dies, but not if the command cannot be executed. "
     "rlock status shows that the lock is in its cool-down. force-unlock ends the cool-down."},
    {option(Opt::slots, "slots", "N", "A POOL OF FOUR TEST DATABASES", kRun | kAcquire,
            {.group = Group::lease, .fallback = "1", .common = true, .least = 1, .most = 1024}),
     "allow up to N holders; if they disagree, the smallest N applies",
     "Use it to limit how many instances of a job run at the same time. Give the same N "
     "everywhere, at most 1024. The command finds in RLOCK_SLOT which one it is: a number from 1 "
     "to N that no other live holder has. This option cannot be combined with --shared, several "
     "servers or another --format."},
    {option(Opt::shared, "shared", "", "FREEZE OF AN ENVIRONMENT", kRun | kAcquire,
            {.group = Group::lease, .letter = 's', .common = true}),
     "take a shared lock: any number of shared holders, but no exclusive one",
     "Use it for readers that may run at the same time. A writer acquires the lock without this "
     "option. Waiters get the lock in order, so later readers do not overtake a waiting writer. "
     "The restrictions of --slots apply."},
    {option(Opt::max_queue, "max-queue", "N", "report: runs pile up behind a slow one",
            kRun | kAcquire, {.group = Group::waiting, .fallback = "none", .most = UINT32_MAX}),
     "exit with 75 immediately if N runs are already waiting",
     "Use it so that runs do not pile up behind a slow one: with 1, a single run waits and all "
     "later ones exit."},
    {option(Opt::once, "once", "KEY", "A MIGRATION THAT ONE REPLICA DOES", kRun | kForget,
            {.group = Group::once, .common = true}),
     "skip the command and exit with 0 if a run of NAME with this KEY has succeeded",
     "Use it for work that several processes start, such as a migration at the start of each "
     "replica: one runs it, and the others wait and then continue. KEY identifies the work, for "
     "example a commit: 1 to 200 bytes. An empty KEY is an error, because it is what a variable "
     "that is not set expands to. The server keeps a KEY for 30 days after a run last asked for "
     "it, and 1,000 of them for each lock. See rlock-guarantees(7)."},
    {option(Opt::once_per, "once-per", "minute|15m|hour|6h|day|week|month",
            "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::once, .common = true, .examples = true}),
     "run the command once in each calendar period; otherwise exit with 0",
     "Use it in the crontab of several hosts. What counts is the period in which a host begins to "
     "ask: for the day, the week (from Monday) and the month by the local date of the host, for "
     "all others by UTC. In addition to the names it takes each duration that divides a day, such "
     "as 15m or 6h. These begin at midnight in UTC. cron starts jobs by the same clock, so that "
     "hosts whose clocks differ by some seconds still mean the same period. For day, week and "
     "month all hosts need the same time zone: a run that finds its work done by a host with "
     "another one prints a warning. See rlock-guarantees(7)."},
    {option(Opt::once_within, "once-within", "DUR", "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::once, .least = 1, .most = 366 * kDay}),
     "skip the command and exit with 0 if a run of NAME succeeded within DUR",
     "A run counts if it began to ask less than DUR before this one, or was granted the lock after "
     "this one began to ask. Use it for timers without a calendar, with jitter, or that start "
     "late: take half of the period of the timer. The clocks of the hosts do not matter. At most "
     "366d. See rlock-guarantees(7)."},
    {option(Opt::max_failures, "max-failures", "N", "A JOB THAT CATCHES UP, AS WITH ANACRON", kRun,
            {.group = Group::once, .fallback = "none", .least = 1, .most = UINT32_MAX}),
     "with --once, --once-per or --once-within: after N failed runs, exit with 75",
     "Without it each waiter tries in its turn what the run before it failed to do. The failures "
     "of runs with this option are counted since the last success, of this KEY or in this period. "
     "rlock does not count a command that could not be started, a command that returned 0 after "
     "rlock was asked to stop, or a run whose lock an operator broke."},
    {option(Opt::supersede, "supersede", "N", "A DEPLOY FROM CI", kRun | kAcquire,
            {.group = Group::waiting, .value_optional = true, .most = kGreatestToken}),
     "among waiters with this option keep only the newest (the greatest N); the others exit with "
     "75",
     "Use it for deploys: after a long one the newest commit is deployed, and those in between are "
     "left out. N is a number that grows, such as the number of the pipeline, so that an old "
     "deploy that is tried again does not win, even if no run waits: the server remembers the "
     "greatest N that was granted the lock for 30 days, or until rlock forget NAME. An N that "
     "equals the greatest one runs again, so that a deploy can be repeated. Without N the latest "
     "to arrive is the newest. The newer run takes over the position of the run that it replaces. "
     "It never affects the current holder. With --nonblock it replaces no waiter. This option "
     "works with one server only."},
    {option(Opt::while_closed, "while-closed", "", "FREEZE OF AN ENVIRONMENT", kRun | kAcquire,
            {.group = Group::waiting}),
     "acquire the lock even if it is closed (rlock close)",
     "Use it for what must run during a freeze, such as a fix. While the lock is closed such a run "
     "waits only for the holder, and for runs with this option that came before it. This option "
     "works with one server only. See rlock close."},
    {option(Opt::urgent, "urgent", "DUR", "report: urgent fix waits behind routine jobs",
            kRun | kAcquire,
            {.group = Group::waiting, .value_optional = true, .least = 1, .most = kDay}),
     "queue as if this run had arrived DUR earlier (1h without DUR, at most 24h)",
     "Use it for what should not stand behind the usual work, such as an urgent fix. An ordinary "
     "waiter is overtaken only by urgent ones that came at most DUR after it, so that no run waits "
     "forever. It never affects the current holder. With --supersede it needs that option's N."},
    {option(Opt::wait_descendants, "wait-descendants", "", "COMING FROM FLOCK", kRun,
            {.group = Group::processes, .common = true}),
     "hold the lock until every process that the command started has exited",
     "Use it for a command that returns before its work is done. Without this option rlock "
     "releases the lock when the command itself has exited, and leftover processes keep running "
     "without the lock."},
    {option(Opt::contain, "contain", "user", "A JOB ONCE A DAY ON TEN HOSTS", kRun,
            {.group = Group::processes, .value_optional = true, .in_file = true}),
     "run the command in a pid namespace of its own; the kernel kills everything in it when the "
     "run is over. =user: in a user namespace, too",
     "Then nothing outlives the run: no process of root, no storm of forks, nothing that a "
     "debugger holds, no daemon, and nothing if rlock and its guard are killed at the same "
     "instant. What the command leaves behind is killed before the lock is released. Processes in "
     "the namespace have numbers of their own, even in what they print, and see no others in "
     "/proc. What they mount is not visible outside. This needs root (CAP_SYS_ADMIN). A user who "
     "is not root gives --contain=user: in a user namespace files of all other users appear to "
     "belong to nobody, ambient capabilities and supplementary groups are lost, and sudo and other "
     "set-user-ID programs do not work. Do not use it for a backup, which would record the wrong "
     "owners. rlock doctor says which of the two works. If your choice does not, rlock exits with "
     "71 before it asks for the lock."},
    {option(Opt::format, "format", "native|plain|redisson", "COMING FROM SET NX EX",
            kRun | kAcquire | kRenew | kRelease | kStatus | kWatch | kForce,
            {.group = Group::storage, .fallback = "native"}),
     "how the lock is stored: as rlock does (native); as redsync, redis-py and node-redlock do "
     "(plain); or as Redisson does (redisson). With plain and redisson, NAME is the key itself",
     "Use plain or redisson to share a lock with a program that uses one of these libraries. Such "
     "locks have no queue and no fencing token, and several options do not work with them: see "
     "rlock-formats(7)."},
    {option(Opt::fail_open, "fail-open", "DUR", "report: backup skipped because the server failed",
            kRun, {.group = Group::waiting, .value_optional = true, .in_file = true, .least = 1}),
     "if no server answers for DUR, warn and run the command without the lock",
     "Use it only if running the job twice does less harm than not running it. Without DUR rlock "
     "decides after --connect-timeout, whatever --wait says. The command then finds RLOCK_UNLOCKED "
     "in its environment instead of RLOCK_TOKEN. A server that rejects the login or is not ready "
     "has answered, so the command does not run, nor does it for an error in the configuration: "
     "see EXIT STATUS, 69."},
    {option(Opt::hide_command, "hide-command", "", "report: secrets in the stored command line",
            kRun | kAcquire, {.group = Group::output, .in_file = true}),
     "do not store the command line; status shows its first 200 bytes to others",
     "Use it if the arguments contain something that others must not see. rlock still stores host, "
     "user and pid."},
    {option(Opt::renew_while, "renew-while", "PID", "A BLOCK OF A SCRIPT", kAcquire,
            {.group = Group::lease, .common = true, .least = 1, .most = INT32_MAX}),
     "renew the lease in the background while the process PID lives, then release the lock",
     "Use it so that a script that dies does not keep the lock, and for steps of unknown duration. "
     "--ttl is then the lease that the background process renews, 60s by default."},
    {option(Opt::event_log, "event-log", "FILE", "THE EVENT LOG", kRun,
            {.group = Group::output, .in_file = true}),
     "append one JSON line to FILE for each event",
     "Use it for logs and monitoring, since run has no --json. Several runs may share one file. If "
     "it cannot be opened or written, rlock prints a warning, and the command runs. See "
     "rlock-formats(7)."},
    {option(Opt::report, "report", "", "report: cron mails too much, or nothing", kRun,
            {.group = Group::output, .in_file = true}),
     "print one line if the command fails, even with --quiet",
     "Use it with -q in a crontab, for a job that is silent unless it fails: then cron mails only "
     "failures, and names the host, how the command exited and how long it ran. If rlock stopped "
     "the command, or the lock was lost, rlock prints a line even without this option."},
    {option(Opt::history_rows, "history", "N", "report: a lock for each of 100,000 records", kRun,
            {.group = Group::storage, .fallback = "100", .in_file = true, .most = 1000}),
     "keep N rows (0-1000) of NAME's history from this run on",
     "Use a small number if there are very many names, or if a lock is used every second, and 0 if "
     "the history must not list the runs. The last run decides. The counters of metrics, and the "
     "last success and failure in status and check, do not depend on it."},

    // ---- of the commands that show locks or change a held one ----

    {option(Opt::owner, "owner", "ID", "A SCRIPT THAT LOCKS ITSELF",
            kRenew | kRelease | kStatus | kForce, {.common = true}),
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
     "Use it only if you know that the holder's host is dead, or if an overlap does no harm. "
     "Without it the next holder starts when the old one has confirmed that its command has "
     "exited, or when the lease expires."},
    {option(Opt::remove, "remove", "OWNER", "report: waiter that nobody needs any more", kQueue,
            {.common = true}),
     "remove this waiter: its owner id, the first characters of it, or its position",
     "Its rlock exits with 75 and reports who removed it. The listing shows positions and owner "
     "ids. A number of up to six digits is a position. If several owner ids begin with OWNER, "
     "rlock removes none and exits with 64. Queues move: in a script, use the owner id. If the "
     "owner holds the lock by now, rlock does not remove it and exits with 75: use force-unlock."},
    {option(Opt::first, "first", "OWNER", "report: urgent fix waits behind routine jobs", kQueue,
            {.common = true}),
     "move this waiter to the front: its owner id, the first characters of it, or its position",
     "Use it for a run that cannot wait. A later run can ask for such a position itself with "
     "--urgent. The listing and the history of its run show who moved it. It never affects the "
     "current holder, and while the lock is closed the waiter still waits until the lock opens. "
     "OWNER as for --remove. This option works with one server only."},
    {option(Opt::runs, "runs", "N", "report: what did the last nights do", kHistory,
            {.letter = 'n', .fallback = "20", .common = true, .least = 1, .most = 1'000'000}),
     "how many runs to show",
     "The server keeps 100 rows for each lock, or as many as the last run's --history says, for 30 "
     "days."},
    {option(Opt::yes, "yes", "", "report: unlock from a script", kForce | kForget,
            {.common = true}),
     "do not ask for confirmation; required when not on a terminal",
     "Use it in scripts, preferably with --owner or --token, so that the script breaks only the "
     "hold that it has checked."},
    {option(Opt::strict, "strict", "", "report: script that sets up a server", kDoctor,
            {.common = true}),
     "exit with 1 for a warning, too",
     "Use it in monitoring, and in scripts that set up a new server."},
    {option(Opt::output, "output", "FILE", "ALERTS", kMetrics, {.common = true}),
     "write to FILE, which is replaced as a whole",
     "Use it for a collector that reads FILE. rlock writes a new file and renames it, so that no "
     "program reads half of it. rlock refuses FILE if it exists and is not a regular file. If the "
     "server does not answer, FILE says rlock_up 0."},
    {option(Opt::within, "within", "DUR", "ALERTS", kCheck, {.common = true}),
     "exit with 2 unless a run succeeded within this time",
     "Use somewhat more than the time between two runs and the length of a run: 26h for a job that "
     "runs each night."},
    {option(Opt::max_held, "max-held", "DUR", "ALERTS", kCheck, {.common = true}),
     "exit with 1 if a run has held the lock for longer",
     "Use it to notice a command that hangs. To end it, use run --max-run."},
    {option(Opt::max_wait, "max-wait", "DUR", "ALERTS", kCheck, {.common = true}),
     "exit with 1 if a run has waited for longer",
     "Use it to notice that runs come faster than they end."},
    {option(Opt::max_waiters, "max-waiters", "N", "ALERTS", kCheck,
            {.common = true, .most = UINT32_MAX}),
     "exit with 1 if more than N wait",
     "Use it to notice a queue that grows. To limit the queue, use run --max-queue."},
    {option(Opt::critical, "critical", "", "ALERTS", kCheck, {.common = true}),
     "exit with 2 where it would exit with 1",
     "Use it for a job whose failure needs immediate attention."},
    {option(Opt::closed_for, "for", "DUR", "FREEZE OF AN ENVIRONMENT", kClose, {.common = true}),
     "open the lock again after this time, at most 30d", "This option or --until is required."},
    {option(Opt::until, "until", "TIME", "FREEZE OF AN ENVIRONMENT", kClose, {.common = true}),
     "open the lock again at this time: 18:00, 2026-11-24T06:00 or, in UTC, 2026-11-24T06:00:00Z",
     "A time of day is the next one. Without Z the time is local. At most 30 days."},
    {option(Opt::reason, "reason", "TEXT", "FREEZE OF AN ENVIRONMENT",
            kRun | kAcquire | kQueue | kForce | kClose | kOpen,
            {.group = Group::output, .common = true, .in_file = true}),
     "free text shown to others in status, queue and messages",
     "Use it to say why the lock is held, such as the name of a release or the number of a ticket. "
     "It must not contain a secret."},

    // ---- which server, how to reach it, what to print ----

    {general(Opt::url, "url", "URL", "MANY WORKTREES OF ONE REPOSITORY",
             {.letter = 'u', .environment = "RLOCK_URL", .common = true, .in_file = true}),
     "the server: redis://HOST[:PORT][/DB], rediss:// for TLS, unix:///PATH, local: and others; "
     "give three or more for a quorum",
     "To give several servers, repeat the option, or separate the URLs in one text by white space "
     "or commas. Two servers are not enough, because they cannot form a majority: see "
     "rlock-guarantees(7). There is no default. Do not put a password in a URL on the command "
     "line, because every user of the host can read the command line."},
    {general(Opt::user, "user", "NAME", "report: an ACL user for each program",
             {.environment = "RLOCK_USER", .in_file = true}),
     "ACL user, instead of the one in the URL",
     "ACCESS lists the permissions that this user needs."},
    {general(Opt::password, "password", "TEXT", "A KUBERNETES CRONJOB",
             {.environment = "RLOCK_PASSWORD, REDISCLI_AUTH", .in_file = true}, 0),
     "the password itself"},
    {general(Opt::password_file, "password-file", "FILE", "A SYSTEMD TIMER",
             {.environment = "RLOCK_PASSWORD_FILE", .in_file = true}),
     "read the password from FILE each time rlock connects (RLOCK_PASSWORD contains the password "
     "itself)",
     "Use it for a password that is mounted into a container or changes while rlock runs. rlock "
     "does not use FILE if other users can write to it. RLOCK_PASSWORD or REDISCLI_AUTH in the "
     "environment contain the password itself. Use only one of RLOCK_PASSWORD and "
     "RLOCK_PASSWORD_FILE. This option cannot be combined with --password-command."},
    {general(Opt::password_command, "password-command", "CMD",
             "report: password from a vault that changes", {.in_file = true}),
     "run CMD with /bin/sh; the first line that it prints is the password",
     "Use it for a password that a vault or a cloud service issues. Do not write a password into "
     "CMD: the list of processes and rlock config show it."},
    {general(Opt::cacert, "cacert", "FILE", "report: server with a private CA",
             {.environment = "RLOCK_CACERT", .in_file = true}),
     "TLS: trust the CA certificates in FILE, instead of the system's",
     "Use it for a server whose certificate a private certificate authority (CA) has signed. For a "
     "folder of CA certificates that openssl rehash has prepared, set SSL_CERT_DIR."},
    {general(Opt::cert, "cert", "FILE", "report: server that requires client certificates",
             {.environment = "RLOCK_CERT", .in_file = true}),
     "TLS: client certificate to present", "Use it if the server requires one (tls-auth-clients)."},
    {general(Opt::key, "key", "FILE", "report: server that requires client certificates",
             {.fallback = "the FILE of --cert", .environment = "RLOCK_KEY", .in_file = true}),
     "TLS: private key of the client certificate",
     "The key must match the certificate of --cert and must not be encrypted."},
    {general(Opt::sni, "sni", "NAME", "report: TLS through a tunnel",
             {.fallback = "the URL's host", .environment = "RLOCK_SNI", .in_file = true}),
     "TLS: name to request from the server and to verify in its certificate",
     "Use it behind a tunnel, or for servers that share one certificate."},
    {general(Opt::insecure, "insecure", "", "report: trial of a server without a CA",
             {.environment = "RLOCK_INSECURE", .in_file = true}),
     "TLS: do not verify the server's certificate (prints a warning)",
     "Anyone who controls the network can then read the password and pretend to grant the lock. "
     "Use it only for tests. --cacert is the safe way to accept a certificate of a private CA, and "
     "has no effect together with this option."},
    {general(Opt::prefix, "prefix", "TEXT", "report: several teams share one server",
             {.fallback = "rlock:", .environment = "RLOCK_PREFIX", .in_file = true}),
     "prefix of the keys at the server",
     "Use it to keep the locks of several teams or stages apart on one server: locks with "
     "different prefixes do not exclude each other. { and } are not allowed. The ACL rule under "
     "ACCESS must allow the prefix."},
    {general(Opt::connect_timeout, "connect-timeout", "DUR",
             "report: distant server, slow name lookup",
             {.fallback = "2s", .in_file = true, .least = 1}),
     "time limit to reach one server: DNS, connect, TLS and login",
     "Use a longer time for distant servers, and with -n and the commands that look at locks or "
     "change them: they try for so long to reach the server, and then exit with 69. A run that "
     "waits tries again and again until --wait expires."},
    {general(Opt::replicas, "replicas", "N", "report: failover forgot a lock",
             {.fallback = "0", .in_file = true, .most = 100},
             kRun | kAcquire | kRenew | kRelease | kDoctor),
     "a grant, a renewal and a release count once N replicas have confirmed them",
     "Use it if a failover must not forget a grant: a lock that is granted is still held after a "
     "failover to a replica that confirmed it. If too few replicas confirm a grant, rlock keeps "
     "it, and starts the command once they do. After 60 s, or when --wait expires, it exits with "
     "69. A renewal that they do not confirm has failed, so the runs of a master that is cut off "
     "from its replicas stop. All runs of NAME must have this option: set it in rlock.toml. N "
     "should be one less than the number of replicas: a failover, or an unavailable replica, then "
     "stops no run. doctor checks it. See rlock-guarantees(7), in particular for replicas that "
     "never become master. It cannot be used with several servers, local: or --format."},
    {general(Opt::config, "config", "FILE", "report: two servers used by one host",
             {.environment = "RLOCK_CONFIG"}),
     "read only this configuration file, instead of rlock/rlock.toml in ~/.config or /etc",
     "The file must exist. /dev/null turns all configuration files off. See rlock.toml(5)."},
    {general(Opt::json, "json", "", "A POOL OF FOUR TEST DATABASES", {.common = true},
             kEveryCommand & ~(kRun | kMetrics | kCheck | kStopLocal)),
     "print JSON on standard output",
     "Use it in scripts: later versions may add fields, but do not remove any. rlock also prints "
     "errors as JSON on standard output, in addition to the message on standard error. "
     "rlock-formats(7) says where the schemas are. run does not have this option, because standard "
     "output "
     "belongs to the command: use --event-log."},
    {general(Opt::quiet, "quiet", "", "A JOB ONCE A DAY ON TEN HOSTS",
             {.letter = 'q', .common = true}),
     "print only errors",
     "With run, a busy lock is not an error: use it in a crontab, because cron mails any output. "
     "With status it suppresses the listing, and the exit code shows whether the lock is held."},
    {general(Opt::verbose, "verbose", "", "report: what does the run wait for", {.letter = 'v'}),
     "report each step on standard error, with the time",
     "Use it to see what rlock waits for, and when it acquires, renews and releases the lock."},
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
     "length of the lease, at least 1s; rlock renews the lease while the command runs",
     "rlock renews it every 10s, or after each third of it if that is less. With a shorter lease "
     "the lock is free sooner if this host dies. With a longer one the command survives a longer "
     "outage of the server. With 60s it survives every outage of up to 40s, for example a failover "
     "of Sentinel with the default down-after-milliseconds, and with 5m of up to 4m38s: that is "
     "the lease without the time between two renewals, --kill-after and a margin. With several "
     "servers the maximum is 60s."},
    {{Opt::ttl, kAcquire, "none; with --renew-while 60s"},
     "length of the lease, at least 1s: longer than the steps take from one rlock renew to the "
     "next",
     "This option is required without --renew-while. If a script dies between its steps, the lock "
     "stays held for the rest of the lease. With several servers the maximum is 60s."},
    {{Opt::ttl, kDoctor, "60s"},
     "length of the lease of the runs for which the servers are checked",
     "rlock doctor compares which outage such a run survives with the time that Sentinel or a "
     "Cluster takes to replace a master."},
    {{Opt::kill_after, kDoctor, "5s, or a sixth of the ttl if that is less"},
     "time from TERM to KILL of these runs",
     "A longer one leaves less of the lease for an outage."},
    {{Opt::ttl, kRenew, "its previous length"},
     "length of the lease from now on, at least 1s",
     "rlock never shortens a lease: if more than this is left, the lease stays as it is. This "
     "option is required with a --format other than native, and with --token to restore a lease."},
    {{Opt::slots, kAcquire, "1"},
     "allow up to N holders; only --json says which slot this one has",
     "Use it to limit how many scripts work at the same time. Give the same N everywhere, at most "
     "1024. The owner id does not show the slot, and acquire sets no RLOCK_SLOT: read slot and "
     "owner from --json, as rlock-recipes(7) shows. The slot is a number from 1 to N that no other "
     "live holder has. This option cannot be combined with --shared, several servers or another "
     "--format."},
    {{Opt::exit_code, kAcquire, "busy=75,superseded=75"},
     "exit with N (0-255) for WHAT: busy or superseded; separate several by commas",
     "busy applies to --nonblock, --wait and --max-queue, and superseded to --supersede."},
    {{Opt::min_hold, kAcquire, "0"},
     "keep the lock for at least DUR, even if it is released sooner",
     "rlock status shows that the lock is in its cool-down. force-unlock ends the cool-down."},
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
     "Use it to see which locks were used within 30 days. It takes no NAME. A pattern lists free "
     "locks in any case."},
    {{Opt::owner, kStatus},
     "with -q: exit with 0 if this owner holds NAME, with 1 if not",
     "It answers whether a script runs under the lock, or whether a later step still does. Any "
     "other code means that rlock does not know, so test the code in a case, not with ||. An "
     "empty ID, which is what $RLOCK_OWNER is outside a run, is a no."},
    {{Opt::owner, kForce},
     "break the lock only if this owner holds it",
     "If another owner holds the lock by now, rlock changes nothing and exits with 75. This option "
     "cannot be combined with --token or --all."},
    {{Opt::token, kRenew},
     "with --ttl: restore the lease with this fencing token if it has ended or the server lost it",
     "Use it if the server may have lost its data. rlock restores the lease only if no other "
     "client can have held the lock since. acquire --json prints the token."},
    {{Opt::token, kForce},
     "break the lock only if its holder has this fencing token",
     "If the lock has been granted again by now, rlock changes nothing and exits with 75. This "
     "option cannot be combined with --owner or --all."},
    {{Opt::once, kForget},
     "forget only that a run with this KEY was done",
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
     "free text that the holder and rlock history report",
     "Use it to say why the lock was broken."},
    {{Opt::wait, kClose, "do not wait"},
     "when it is closed, wait at most this long until no run holds the lock, then exit with 75",
     "Use it before work that must not overlap with any run. The lock stays closed even if a run "
     "still holds it then."},
    {{Opt::reason, kClose},
     "free text shown to others, at most 200 bytes",
     "Who waits for the lock, and who is refused, sees it."},
    {{Opt::reason, kOpen},
     "free text that rlock history reports, at most 200 bytes",
     "Use it to say why the lock was opened before its time."},
    {{Opt::quiet, kStatus}, "print nothing: the exit code shows whether NAME is held"},
    {{Opt::quiet, kRun}, "print only errors; a skipped run is not an error"},
};

static_assert(util::rows_in_order<Opt::version>(kOptions, &OptionRow::id));

const PerCommandText* own_text(Opt id, CommandId command) {
  for (const PerCommandText& own : kPerCommandTexts) {
    if (own.of.id == id && (own.of.commands & bit(command)) != 0) return &own;
  }
  return nullptr;
}

}  // namespace

ValueKind OptionRow::kind() const {
  if (metavar.empty()) return ValueKind::flag;
  if (metavar == "DUR") return ValueKind::duration;
  if (metavar == "N" || metavar == "PID") return ValueKind::number;
  return metavar.front() >= 'a' && !examples ? ValueKind::word : ValueKind::text;
}

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
