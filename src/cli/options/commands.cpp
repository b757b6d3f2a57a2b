#include "cli/options/options.hpp"

#include "util/table.hpp"

namespace rlock::cli {
namespace {

// In the order in which the help lists them.
constexpr CommandRow kCommands[] = {
    {{CommandId::run, Purpose::hold, "run",
      "run [options] NAME -- COMMAND [ARG...]\n"
      "run [options] NAME -c 'shell text'",
      "hold the lock while a command runs"},
     "Waits for the lock NAME, runs COMMAND, and renews the lock until COMMAND exits. Then it "
     "releases the lock and exits as COMMAND did. If the lock is lost, rlock stops COMMAND and "
     "every process that it started.\n"
     "Everything after the first -- is the command. It runs directly, without a shell.\n"
     "The command finds RLOCK_NAME, RLOCK_OWNER, RLOCK_TOKEN (the fencing token) and RLOCK_HELD in "
     "its environment. RLOCK_HELD lets an rlock run of NAME inside COMMAND enter the lock "
     "immediately. Such nested runs do not exclude each other.\n"
     "Durations: 500ms, 10s, 5m, 1h30m, 2d, or a number of seconds.\n"
     "Exit status: that of COMMAND, or 128+N if signal N killed it, or one of these (rlock help 69 "
     "says what to do about 69):",
     "rlock run shop/nightly -- /usr/local/bin/backup /srv\n"
     "rlock run -q --once-per day shop/report -- make report # one host does it\n"
     "rlock run -w 10m --max-run 1h shop/deploy -- ./deploy.sh\n"
     "rlock run --once \"$GIT_SHA\" shop/migrate -- ./migrate # one replica\n"
     "rlock run shop/dump -c 'pg_dump app | gzip >app.gz'"},
    {{CommandId::acquire, Purpose::hold, "acquire", "acquire [options] NAME",
      "hold a lock across separate steps"},
     "Waits for the lock NAME, prints the owner id and nothing else, and exits. The lock stays "
     "held until rlock release, or until its lease expires. Prefer rlock run if the steps can be "
     "one command.\n"
     "Give either --ttl, longer than the steps take from one rlock renew to the next, or "
     "--renew-while.\n"
     "With --renew-while a small background process renews the lease (60s, or --ttl) while the "
     "process PID lives, and releases the lock when PID exits. If the lock is lost or broken, "
     "nothing stops the steps: the background process prints an error, even with -q, on the "
     "standard error of PID and exits, and later rlock renew and rlock release exit with 76, "
     "unless a server that was stopped has carried out a late renewal and nobody else held the "
     "lock. If "
     "PID exits within 2 s without a release, the background process prints an error on the "
     "standard error of PID's parent, because later steps would run without the lock. If PID exits "
     "later, it prints nothing. While PID lives, the background process ignores every signal "
     "except KILL, because a TERM to all processes of a job must not free the lock while a step is "
     "still running.\n"
     "Name a process that outlives all steps: $$ in a script, even inside $( ), and $PPID if each "
     "step runs in its own shell, as in many CI systems. rlock refuses $BASHPID inside $( ), "
     "because that is the substitution and not the script.\n"
     "rlock status shows PID as the holder, or without --renew-while the process that ran rlock "
     "acquire.\n"
     "Exit status: 0 if the lock is held. 64 wrong usage, 65 a key of the lock does not belong to "
     "rlock, 69 no server answered, 71 system error, or rlock could not print the owner id (the "
     "lock is then not held), 75 the lock is busy, 77 the server denied access, 78 configuration "
     "error.",
     "owner=$(rlock acquire shop/deploy --ttl 15m -w 10m) || exit\n"
     "owner=$(rlock acquire shop/deploy --renew-while $$) || exit\n"
     "lease=$(rlock acquire shop/db --slots 4 --renew-while $$ --json) || exit\n"
     "slot=$(echo \"$lease\" | jq .slot) owner=$(echo \"$lease\" | jq -r .owner)"},
    {{CommandId::renew, Purpose::hold, "renew", "renew [options] NAME --owner ID",
      "extend the lease of a lock that was acquired"},
     "Extends the lease of the owner id that rlock acquire printed: the lease then lasts for --ttl "
     "from now, or for its previous length. rlock never shortens a lease. With --token and --ttl "
     "it restores a lease that has expired, or that the server lost, if no other client can have "
     "held the lock since.\n"
     "Exit status: 0 if the lease was extended. 76 if this owner no longer holds the lock: the "
     "message says why, and which run holds it now.",
     "rlock renew shop/deploy --owner \"$owner\"\n"
     "rlock renew shop/deploy --owner \"$owner\" --ttl 1h --token \"$token\""},
    {{CommandId::release, Purpose::hold, "release", "release [options] NAME --owner ID",
      "release a lock that was acquired"},
     "Releases the lock NAME, for the owner id that rlock acquire printed.\n"
     "Exit status: 0, even if this owner has already released the lock. 75 if a live rlock run "
     "holds the lock, which only force-unlock breaks. 76 if this owner no longer held the lock: "
     "its lease had expired, or an operator had broken the lock.",
     "rlock release shop/deploy --owner \"$owner\""},
    {{CommandId::status, Purpose::look, "status", "status [options] [NAME...]",
      "show which locks are held, and by whom"},
     "Shows the holder of each lock NAME. Without NAME, lists the locks under the prefix that are "
     "held, waited for, broken or in a cool-down, and counts the others. NAME may be a pattern, in "
     "which * matches any text and ? one character: put it in quotes.\n"
     "Exit status: 0. With -q and a NAME: 0 if the lock is held (with --owner: by that owner), 1 "
     "if it is not. Any other code means that rlock does not know.",
     "rlock status\n"
     "rlock status --all    # free ones, too\n"
     "rlock status shop/nightly shop/deploy\n"
     "rlock status 'shop/*'\n"
     "rlock status -q shop/nightly && echo running\n"
     "rlock status --json | jq '.locks[] | select(.state == \"held\") | .name'"},
    {{CommandId::queue, Purpose::look, "queue", "queue [options] [NAME]",
      "list waiting runs in order"},
     "Lists the runs that wait for NAME, in the order in which they will get the lock. Without "
     "NAME, lists the waiters of all locks.\n"
     "STARTS IN estimates when each of the first 128 runs can start, if every run takes the median "
     "time of the successful runs in the history. This column appears after three successful "
     "runs.\n"
     "--remove removes a waiter from the queue: its rlock exits with 75 and reports who removed "
     "it. --first moves a waiter to the head of the queue.\n"
     "Exit status: 0, even if there was no such waiter. 64 if OWNER matches several waiters. 75 if "
     "the owner holds the lock.",
     "rlock queue            # of all locks\n"
     "rlock queue shop/deploy\n"
     "rlock queue shop/deploy --remove 2\n"
     "rlock queue shop/deploy --remove 6f1c9a\n"
     "rlock queue shop/deploy --first 3 --reason 'customers wait'"},
    {{CommandId::watch, Purpose::look, "watch", "watch [options] [NAME...]",
      "show locks as they change"},
     "On a terminal, shows a table of the locks NAME that is kept up to date. Without NAME, the "
     "table has every lock under the prefix that is held, waited for or cooling down. NAME may be "
     "a pattern, as for status. ENDS is when the run would finish if it took as long as the "
     "successful runs before it, and AGE is how old the line is. Use the arrow keys or j and k to "
     "move, enter to show the queue of a lock and to go back, and q to quit. If the server does "
     "not answer, the last table stays, with its age, until the server is back.\n"
     "Without a terminal, or with --json, prints one JSON object for each lock, and then one for "
     "each change. watch changes nothing on the server. It sends at most two commands a second, "
     "and at most four for more than 20 locks. One command reads up to 100 locks.\n"
     "Exit status: 0. 69 or 77 if the server cannot be reached at the start.",
     "rlock watch\n"
     "rlock watch shop/nightly 'blog/*'\n"
     "rlock watch --json | jq -c 'select(.lock.state == \"held\")'"},
    {{CommandId::force_unlock, Purpose::operate, "force-unlock", "force-unlock [options] NAME",
      "break a lock, as an operator"},
     "Shows the holder of the lock NAME, asks for confirmation, and breaks the lock. The holder's "
     "rlock stops its command, exits with 76 and reports who broke the lock and why. The next "
     "holder starts when the old one has confirmed that its command has exited, or when the lease "
     "expires. rlock cannot stop the steps that run under a lock of rlock acquire: their next "
     "rlock renew or release exits with 76. If nothing renews such a lock, the next holder starts "
     "immediately.\n"
     "Exit status: 0, even if no run holds NAME. 64 if there are several holders and no option "
     "chooses among them, or if rlock is not on a terminal and --yes is missing. 75 if --owner or "
     "--token no longer match. In both cases nothing was changed.",
     "rlock force-unlock shop/deploy\n"
     "rlock force-unlock shop/db --token 1763690000123456 --reason 'host gone'"},
    {{CommandId::close, Purpose::operate, "close", "close [options] NAME...",
      "stop granting a lock until a given time"},
     "Closes each lock NAME for a maintenance window or a freeze: until the given time, the server "
     "grants it to no new run.\n"
     "Current holders and runs nested inside them keep running, and rlock lists them. Waiters keep "
     "their positions. New runs join the queue, or are refused if they do not wait. An exempt run "
     "acquires the lock all the same: see rlock run --help.\n"
     "NAME may be a pattern, as for status. A pattern closes the locks that exist now. If a lock "
     "is already closed, the new time and reason replace the old ones. If another user, or a user "
     "of another host, has closed it for longer, it stays as it is, unless you give --replace.\n"
     "rlock stores the closure on the server only. If the server loses it, the lock is open.\n"
     "Exit status: 0 if every lock is closed. 64 without --for or --until, or if no lock matches a "
     "pattern: then nothing "
     "was closed. 69 if the server did not answer or is not ready: the message says whether the "
     "lock may be closed. 75 if a run still holds the lock when --wait expires, if someone else "
     "closed or opened it at the same moment, or if someone else has closed it for longer.",
     "rlock close shop/deploy --for 2h --reason 'database upgrade'\n"
     "rlock close 'shop/*' --until 18:00\n"
     "rlock close shop/db --for 2h -w 10m && ./upgrade; rlock open shop/db"},
    {{CommandId::open, Purpose::operate, "open", "open [options] NAME...",
      "open a lock that close has closed"},
     "Opens each lock NAME before its closure ends. The server then grants the lock to the first "
     "waiter. NAME may be a pattern, as for status.\n"
     "Exit status: 0, even if NAME was open. 75 if someone else closed or opened it at the same "
     "moment.",
     "rlock open shop/deploy"},
    {{CommandId::history, Purpose::look, "history", "history [options] [NAME]",
      "show the last runs"},
     "Shows the last runs under the lock NAME, newest first. Without NAME, shows the runs of all "
     "locks. Each run has a result. exit N and a signal such as TERM are the command's own. The "
     "others are released (by rlock release), expired (the lease expired because the host or its "
     "rlock died, or did not reach the server), lost, broken (an operator broke the lock), "
     "max-run, no-guard (its guard was killed), no-renewal (no thread could be started) and "
     "stopped (rlock was asked to stop, and the command returned 0). The list also counts the runs "
     "that were skipped because the lock was busy.\n"
     "Exit status: 0.",
     "rlock history shop/nightly\n"
     "rlock history -n 50    # of all locks\n"
     "rlock history shop/nightly -n 1 --json | jq '.runs[0].exit_code'"},
    {{CommandId::forget, Purpose::operate, "forget", "forget [options] NAME",
      "let done work be done again"},
     "Asks for confirmation, and forgets which work of NAME was done or failed, and the greatest "
     "number of a run that superseded others. The next run then does the work. NAME cannot be a "
     "pattern. Holders, waiters and the history stay as they "
     "are.\n"
     "Exit status: 0, even if nothing was recorded. 64 if rlock is not on a terminal and --yes is "
     "missing. 75 if it was not confirmed. In both cases nothing was changed.",
     "rlock forget shop/migrate --once \"$GIT_SHA\"\n"
     "rlock forget shop/nightly --yes"},
    {{CommandId::metrics, Purpose::look, "metrics", "metrics [options] [NAME...]",
      "print metrics for Prometheus"},
     "Prints the locks NAME in the text format of Prometheus, for example for the textfile "
     "collector of node_exporter: holders, waiters, the oldest wait, how long the lock has been "
     "held, the last success and failure, the last duration, and counters of runs, failures, "
     "losses, skips and done. NAME may be a pattern, as for status. Without NAME, prints the locks "
     "that are held, waited for or were used by a run within 24 hours. rlock prints at most 1000 "
     "locks, and counts the others. To find them it reads every lock under the prefix: if there "
     "are tens of thousands, give names or patterns.\n"
     "Exit status: 0. 69 or 77 if the server cannot be reached: then rlock prints only rlock_up 0.",
     "rlock metrics --output /var/lib/prometheus/node-exporter/rlock.prom\n"
     "rlock metrics shop/nightly 'blog/*'"},
    {{CommandId::check, Purpose::look, "check", "check [options] NAME",
      "check a lock for Nagios, Icinga and others"},
     "Checks the runs under the lock NAME as a plugin of Nagios, Icinga and others: prints one "
     "line, with performance data. The server remembers the last success and failure for 30 days, "
     "whatever rlock history lists.\n"
     "Exit status: 0 if all is well. 1 if the last run failed, or a --max option is exceeded (with "
     "--critical 2). 2 if no run succeeded --within DUR, even if NAME was never held. 3 if rlock "
     "cannot find out: after a usage error, if the server cannot be reached, and without --within "
     "for a NAME that was never held.",
     "rlock check shop/nightly --within 26h\n"
     "rlock check shop/deploy --max-held 2h --max-waiters 5 --critical"},
    {{CommandId::doctor, Purpose::set_up, "doctor", "doctor [options]",
      "check whether the server can hold locks safely"},
     "Checks each server of the URL, the locks there, and this host. Each check has a line: ok, "
     "warn or fail, and what to do about it, or no if an option does not work on this host. "
     "doctor writes only keys of its own, and removes them. If it is killed, they expire within a "
     "minute.\n"
     "Exit status: 0, even with warnings. 1 if a check failed, with --strict for a warning too. 64 "
     "wrong usage, 78 configuration error.",
     "rlock doctor\n"
     "rlock doctor --json | jq '.servers[].checks[] | select(.state != \"ok\")'"},
    {{CommandId::config, Purpose::set_up, "config", "config [options]",
      "show each setting and where it comes from"},
     "Prints each setting that applies to rlock run, and its source: the option, the environment "
     "variable, the line of the configuration file, or the default. It hides passwords, but shows "
     "the text of a password-command. It does not connect to a server.\n"
     "Exit status: 0. 64 wrong usage, 78 a configuration file cannot be used.",
     "rlock config\n"
     "rlock config --json | jq '.settings[] | select(.setting == \"url\").place'"},
    {{CommandId::stop_local, Purpose::operate, "stop-local", "stop-local [options]",
      "stop the private server of local:"},
     "Stops the server of the folder that the URL local: or local:/DIR names, or without a URL the "
     "server of the default folder. rlock does not stop the server while a run holds or waits for "
     "a lock under the prefix, and shows which lock that is. The server keeps what it has stored, "
     "and the next rlock that needs it starts it again.\n"
     "Exit status: 0, even if no server was running. 64 if the URL is not local:. 75 if a lock is "
     "held.",
     "rlock stop-local\n"
     "rlock stop-local --url local:/srv/locks"},
    {{CommandId::completion, Purpose::set_up, "completion", "completion bash|zsh|fish",
      "print a completion script for a shell"},
     "Prints a script that makes the shell complete commands, options and their values, the names "
     "of locks, and the command after --. Packages install this script. If you have no package, "
     "load it in a start-up file of the shell.\n"
     "Exit status: 0. 64 for any other shell.",
     "source <(rlock completion bash)   # in ~/.bashrc\n"
     "source <(rlock completion zsh)    # in ~/.zshrc, after compinit\n"
     "rlock completion fish >~/.config/fish/completions/rlock.fish"},
};

static_assert(util::rows_in_order<CommandId::completion>(kCommands, &CommandRow::id));

}  // namespace

std::span<const CommandRow> commands() {
  return kCommands;
}
const CommandRow& row_of(CommandId id) {
  return kCommands[static_cast<size_t>(id)];
}

const CommandRow* find_command(std::string_view name) {
  for (const CommandRow& row : kCommands) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace rlock::cli
