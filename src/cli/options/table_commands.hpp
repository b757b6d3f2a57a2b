#pragma once

#include "cli/options/options.hpp"

// The commands, in the order in which the help lists them.
namespace rlock::cli {

inline constexpr CommandRow kCommands[] = {
    {.id = CommandId::run,
     .name = "run",
     .usage = "run [options] NAME -- COMMAND [ARG...]\n"
              "run [options] NAME -c 'shell text'",
     .summary = "hold the lock while a command runs",
     .about =
         "Waits for the lock NAME, runs COMMAND under it, keeps the lease alive, releases the lock "
         "when COMMAND has ended, and exits as COMMAND did. Everything after the first -- is the "
         "command, executed directly, without a shell. Its environment contains RLOCK_NAME, "
         "RLOCK_OWNER, RLOCK_TOKEN (the fencing token) and RLOCK_HELD, by which an rlock run of "
         "NAME inside it enters the lock at once; such nested runs do not exclude each other. If "
         "the lease is lost, COMMAND and everything that it started are ended.\n"
         "Durations: 500ms, 10s, 5m, 1h30m, 2d, or a number of seconds.\n"
         "Exit status: the command's own, or 128+N when signal N ended it. 64 wrong usage, 65 a "
         "key of the lock is not rlock's, 69 no server answered, 70 internal error, 71 system "
         "error, 75 the lock is busy, 76 the lease was lost, 77 the server refused access, 78 "
         "configuration, 124 --max-run ended the command, 126 the command cannot be executed, 127 "
         "it was not found.",
     .examples = "rlock run nightly -- /usr/local/bin/backup /srv\n"
                 "rlock run -qn --min-hold 5m report -- make report   # one host does it\n"
                 "rlock run -w 10m --max-run 1h deploy -- ./deploy.sh\n"
                 "rlock run db -c 'pg_dump app | gzip >app.gz'"},
    {.id = CommandId::acquire,
     .name = "acquire",
     .usage = "acquire [options] NAME",
     .summary = "hold a lock across separate steps",
     .about =
         "Waits for the lock NAME, prints the owner id and nothing else, and exits. The lock stays "
         "held until rlock release, or until its lease ends. Either --ttl is required, longer than "
         "the steps take from one rlock renew to the next, or --renew-while.\n"
         "With --renew-while a small background process renews the lease (of 30s, or --ttl) while "
         "the process PID lives, and releases the lock when it has exited. The background process "
         "exits when the lock is lost or released. Nothing ends the steps when the lease is lost "
         "or broken: a line on the standard error of PID reports it, and rlock renew and rlock "
         "release exit with 76. Name a process that outlives all steps: where each step is a shell "
         "of its own, as in many CI systems, that is $PPID, not $$.\n"
         "rlock status shows PID as the holder, or else the process that ran rlock acquire.\n"
         "Exit status: 0 when the lock is held. 64 wrong usage, 65 a key of the lock is not "
         "rlock's, 69 no server answered, 71 system error, or the owner id could not be printed "
         "(the lock is then not held), 75 the lock is busy, 77 the server refused access, 78 "
         "configuration.",
     .examples = "owner=$(rlock acquire deploy --ttl 15m -w 10m) || exit\n"
                 "owner=$(rlock acquire deploy --renew-while $$) || exit\n"
                 "rlock acquire deploy --ttl 15m --json | jq .token"},
    {.id = CommandId::renew,
     .name = "renew",
     .usage = "renew [options] NAME --owner ID",
     .summary = "extend the lease of a lock that acquire took",
     .about =
         "Extends the lease of the owner that rlock acquire printed: to --ttl from now, or to the "
         "length it had. A lease is never shortened. With --token and --ttl a lease that has "
         "ended, or that the server lost, is put back if nobody can have held the lock since.\n"
         "Exit status: 0 when the lease was extended. 76 when the lock is no longer this owner's: "
         "the message says why, and who holds it.",
     .examples = "rlock renew deploy --owner \"$owner\"\n"
                 "rlock renew deploy --owner \"$owner\" --ttl 1h --token \"$token\""},
    {.id = CommandId::release,
     .name = "release",
     .usage = "release [options] NAME --owner ID",
     .summary = "release a lock that acquire took",
     .about =
         "Releases the lock NAME of the owner that rlock acquire printed.\n"
         "Exit status: 0, also when this owner has just released the lock. 75 for the lock of a "
         "live rlock run, which only force-unlock breaks. 76 when the lock was no longer this "
         "owner's: its lease had ended, or an operator broke it.",
     .examples = "rlock release deploy --owner \"$owner\""},
    {.id = CommandId::status,
     .name = "status",
     .usage = "status [options] [NAME...]",
     .summary = "show who holds which lock",
     .about =
         "Shows who holds each NAME; without NAME, every lock under the prefix. NAME may be a "
         "pattern, in which * matches any text and ? one character: quote it.\n"
         "Exit status: 0. With -q and a NAME: 0 when it is held (by that owner), 1 when it is not.",
     .examples = "rlock status\n"
                 "rlock status nightly deploy\n"
                 "rlock status 'team-1/*'\n"
                 "rlock status -q nightly && echo running\n"
                 "rlock status --json | jq '.locks[] | select(.state == \"held\") | .name'"},
    {.id = CommandId::queue,
     .name = "queue",
     .usage = "queue [options] NAME",
     .summary = "list who waits, in order",
     .about = "Lists who waits for NAME, in order of service. --remove takes one waiter out of the "
              "queue: its rlock exits with 75 and reports who removed it.\n"
              "Exit status: 0. 75 when the owner to remove holds the lock.",
     .examples = "rlock queue deploy\n"
                 "rlock queue deploy --remove 6f1c9a0e5d3b4872a1908f7e6d5c4b3a"},
    {.id = CommandId::watch,
     .name = "watch",
     .usage = "watch [options] [NAME...]",
     .summary = "look at locks as they change",
     .about =
         "On a terminal, shows a table of the locks NAME that is kept up to date; without NAME, of "
         "every lock under the prefix that is held, waited for or cooling down. NAME may be a "
         "pattern, as for status. ENDS is when the run would end if it took as long as the "
         "successful ones before it, and AGE how old the line is. The arrow keys or j and k move, "
         "enter shows the queue of a lock and leads back, q quits. When the server does not "
         "answer, the last table stays, with its age, until the server is back.\n"
         "Elsewhere, or with --json, prints one JSON object for each difference between two looks: "
         "at first one for each lock. watch changes nothing at the server, and sends at most two "
         "commands a second, beyond 20 locks four, one of which reads up to 100 locks.\n"
         "Exit status: 0. 69 or 77 when the server cannot be reached at the start.",
     .examples = "rlock watch\n"
                 "rlock watch nightly 'team-1/*'\n"
                 "rlock watch --json | jq -c 'select(.lock.state == \"held\")'"},
    {.id = CommandId::force_unlock,
     .name = "force-unlock",
     .usage = "force-unlock [options] NAME",
     .summary = "break a lock, as an operator",
     .about =
         "Shows who holds the lock NAME, asks for confirmation, and breaks the lock. The holder's "
         "command is ended; its rlock exits with 76 and reports who broke the lock and why. The "
         "next holder starts when this one has confirmed that, or when its lease ends. The steps "
         "under a lock of rlock acquire are not ended: their next rlock renew or release exits "
         "with 76. If nothing renews such a lock, the next holder starts at once.\n"
         "Exit status: 0, also when NAME is not held. 64 when there are several holders and none "
         "was chosen, or when not on a terminal and without --yes. 75 when --owner or --token no "
         "longer match: nothing was changed.",
     .examples = "rlock force-unlock deploy\n"
                 "rlock force-unlock deploy --token 1763690000123456 --reason 'host is gone'"},
    {.id = CommandId::history,
     .name = "history",
     .usage = "history [options] [NAME]",
     .summary = "show the last runs",
     .about =
         "Shows the last runs under the lock NAME, newest first; without NAME, those of all locks. "
         "Each has a result: exit N, signal N, released (by rlock release), expired (the lease "
         "ended, because the host or its rlock died), lost, forced (an operator broke the lock) or "
         "max-run. Runs that were skipped because the lock was busy are listed between them. The "
         "server keeps the last hundred for 30 days.\n"
         "Exit status: 0.",
     .examples = "rlock history nightly\n"
                 "rlock history -n 50    # of all locks\n"
                 "rlock history nightly -n 1 --json | jq '.runs[0].exit_code'"},
    {.id = CommandId::doctor,
     .name = "doctor",
     .usage = "doctor [options]",
     .summary = "check that the server is fit to hold locks",
     .about =
         "Checks each server of the URL and prints, for each check, ok, warn or fail and what to "
         "do: whether it answers, its version, whether this user may run what rlock needs (and the "
         "smallest ACL rule that works), its role, its eviction policy, what a restart loses, its "
         "clock compared with this host's, the round trip, whether the connection is encrypted, "
         "and whether the servers of a quorum are different ones. It writes only keys of its own "
         "and removes them.\n"
         "Exit status: 0, also with warnings. 1 when a check failed; with --strict, also for a "
         "warning. 64 wrong usage, 78 configuration.",
     .examples = "rlock doctor\n"
                 "rlock doctor --json | jq '.servers[].checks[] | select(.state != \"ok\")'"},
    {.id = CommandId::completion,
     .name = "completion",
     .usage = "completion bash|zsh|fish",
     .summary = "print the completion script",
     .about =
         "Prints the script with which a shell completes commands, options and their values, the "
         "names of locks, and the command after --. Packages install it; otherwise load it in a "
         "start-up file of the shell.\n"
         "Exit status: 0. 64 for another shell.",
     .examples = "source <(rlock completion bash)   # in ~/.bashrc\n"
                 "source <(rlock completion zsh)    # in ~/.zshrc, after compinit\n"
                 "rlock completion fish >~/.config/fish/completions/rlock.fish"},
};

}  // namespace rlock::cli
