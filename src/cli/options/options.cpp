#include "cli/options/options.hpp"

#include <array>

namespace rlock::cli {
namespace {

constexpr unsigned bit(CommandId id) {
  return 1U << static_cast<unsigned>(id);
}
constexpr unsigned kRun = bit(CommandId::run);
constexpr unsigned kAcquire = bit(CommandId::acquire);
constexpr unsigned kRenew = bit(CommandId::renew);
constexpr unsigned kRelease = bit(CommandId::release);
constexpr unsigned kStatus = bit(CommandId::status);
constexpr unsigned kQueue = bit(CommandId::queue);
constexpr unsigned kForce = bit(CommandId::force_unlock);
constexpr unsigned kHistory = bit(CommandId::history);
constexpr unsigned kDoctor = bit(CommandId::doctor);
constexpr unsigned kCompletion = bit(CommandId::completion);
constexpr unsigned kEvery = kRun | kAcquire | kRenew | kRelease | kStatus | kQueue | kForce |
                            kHistory | kDoctor | kCompletion;

constexpr std::array<CommandRow, 10> kCommands{{
    {CommandId::run, "run",
     "run [options] NAME -- COMMAND [ARG...]\n"
     "run [options] NAME -c 'shell text'",
     "hold the lock while a command runs",
     "Waits for the lock NAME, runs COMMAND under it, keeps the lease alive, releases the lock "
     "when "
     "COMMAND has ended, and exits as COMMAND did. Everything after the first -- is the command, "
     "executed directly, without a shell. It sees RLOCK_NAME, RLOCK_OWNER and RLOCK_TOKEN (the "
     "fencing token) in its environment, and RLOCK_HELD: by that an rlock run of NAME inside it "
     "enters the lock at once, siblings together. When the lease is lost, COMMAND is ended with "
     "everything "
     "it started.\n"
     "Durations: 500ms, 10s, 5m, 1h30m, 2d, or a number of seconds.\n"
     "Exit status: the command's own, 128+N when signal N ended it. 64 wrong usage, 65 a key of "
     "the "
     "lock is not ours, 69 no server answered, 70 internal error, 71 the system refused, 75 busy, "
     "76 the lease was lost, 77 the server refused us, 78 configuration, 124 --max-run ended the "
     "command, 126 it cannot be executed, 127 it was not found.",
     "rlock run nightly -- /usr/local/bin/backup /srv\n"
     "rlock run -qn --min-hold 5m report -- make report   # one host does it\n"
     "rlock run -w 10m --max-run 1h deploy -- ./deploy.sh\n"
     "rlock run db -c 'pg_dump app | gzip >app.gz'"},
    {CommandId::acquire, "acquire", "acquire [options] NAME", "hold a lock across separate steps",
     "Waits for the lock NAME, prints the owner id, nothing else, and ends: the lock stays held "
     "until "
     "rlock release, or until its lease ends. It needs --ttl, longer than the steps take from one "
     "rlock renew to the next, or --renew-while.\n"
     "With --renew-while a small background process renews the lease (of 30s, or --ttl) while PID "
     "lives, releases the lock when PID ends, and ends itself when the lock is lost or released. "
     "Nothing ends the steps when the lease is lost or broken: a line on the stderr of PID reports "
     "it, and rlock renew and rlock release exit with 76. Name a process that outlives all steps: "
     "where each step is a shell of its own, as in many CI systems, that is $PPID, not $$.\n"
     "status shows the process that asked, or PID.\n"
     "Exit status: 0 it is held. 64 wrong usage, 65 a key of the lock is not ours, 69 no server "
     "answered, 71 the system refused, or the owner id could not be printed: then nothing is held, "
     "75 busy, 77 the server refused us, 78 configuration.",
     "owner=$(rlock acquire deploy --ttl 15m -w 10m) || exit\n"
     "owner=$(rlock acquire deploy --renew-while $$) || exit\n"
     "rlock acquire deploy --ttl 15m --json | jq .token"},
    {CommandId::renew, "renew", "renew [options] NAME --owner ID",
     "extend a lock that acquire holds",
     "Extends the lease of the owner that rlock acquire printed, to --ttl from now, else to the "
     "length it had; never shortens it. With --token and --ttl a lease that ended, or that the "
     "server lost, is put back where nobody can have had it since.\n"
     "Exit status: 0. 76 when the lock is no longer this owner's: says what became of it, and who "
     "has it.",
     "rlock renew deploy --owner \"$owner\"\n"
     "rlock renew deploy --owner \"$owner\" --ttl 1h --token \"$token\""},
    {CommandId::release, "release", "release [options] NAME --owner ID",
     "give a lock back that acquire holds",
     "Releases the lock NAME of the owner that rlock acquire printed.\n"
     "Exit status: 0, also for a lock that this owner has just released. 75 for the lock of a live "
     "rlock run, which only force-unlock breaks. 76 when it was no longer this owner's: the lease "
     "had ended, or an operator broke the lock.",
     "rlock release deploy --owner \"$owner\""},
    {CommandId::status, "status", "status [options] [NAME...]", "who holds what",
     "Shows who holds each NAME; without NAME, every lock under the prefix. In a NAME that is a "
     "pattern * stands for any text and ? for one character: quote it.\n"
     "Exit status: 0. With -q and a NAME: 0 when it is held (by that owner), 1 when it is not.",
     "rlock status\n"
     "rlock status nightly deploy\n"
     "rlock status 'team-1/*'\n"
     "rlock status -q nightly && echo running\n"
     "rlock status --json | jq '.locks[] | select(.state == \"held\") | .name'"},
    {CommandId::queue, "queue", "queue [options] NAME", "who waits, in order",
     "Lists who waits for NAME, in order of service. With --remove one waiter is taken out: its "
     "rlock exits 75 and says who removed it.\n"
     "Exit status: 0. 75 when the owner to remove holds the lock.",
     "rlock queue deploy\n"
     "rlock queue deploy --remove 6f1c9a0e5d3b4872a1908f7e6d5c4b3a"},
    {CommandId::force_unlock, "force-unlock", "force-unlock [options] NAME",
     "an operator breaks a lock",
     "Shows what it breaks, asks, and breaks the lock NAME. The holder's command is ended and its "
     "rlock exits 76 and says who did it and why; the next one starts when the holder has "
     "confirmed "
     "or its lease ends. Of a lock of acquire nothing ends the steps: they hear of it from their "
     "next rlock renew or release, and where nothing renews it the next one starts at once.\n"
     "Exit status: 0, also when NAME is not held. 64 when several hold it and none was chosen, or "
     "off a terminal without --yes. 75 when --owner or --token no longer match: nothing changed.",
     "rlock force-unlock deploy\n"
     "rlock force-unlock deploy --token 1763690000123456 --reason 'host is gone'"},
    {CommandId::history, "history", "history [options] [NAME]", "the last runs",
     "Shows the last runs under the lock NAME, without NAME those of all locks, the newest first, "
     "with what they came to: exit N, "
     "signal N, released (by rlock release), expired (its lease ended: its host or its rlock "
     "died), "
     "lost, forced (by an operator), max-run. Between them stand those who came and found the lock "
     "busy. The server keeps the last hundred for 30 days.\n"
     "Exit status: 0.",
     "rlock history nightly\n"
     "rlock history -n 50    # of all locks\n"
     "rlock history nightly -n 1 --json | jq '.runs[0].exit_code'"},
    {CommandId::doctor, "doctor", "doctor [options]", "is this server fit to hold locks?",
     "Asks each server of the URL and says of each point ok, warn or fail, and what to do: whether "
     "it "
     "answers, its version, whether this user may run what rlock runs (else the least ACL rule "
     "that "
     "works), its role, what it evicts, what a restart forgets, its clock against this host's, the "
     "round trip, who can read along, and whether the servers of a quorum are different ones. It "
     "writes only keys of its own, and leaves none.\n"
     "Exit status: 0, also with warnings. 1 when any point failed; with --strict also with a "
     "warning. 64 wrong usage, 78 "
     "configuration.",
     "rlock doctor\n"
     "rlock doctor --json | jq '.servers[].checks[] | select(.state != \"ok\")'"},
    {CommandId::completion, "completion", "completion bash|zsh|fish", "print the completion script",
     "Prints what makes a shell complete rlock: commands, options and their values, names of "
     "locks, "
     "the command after --. A package installs it; else a start-up file of the shell can take it.\n"
     "Exit status: 0. 64 for another shell.",
     "source <(rlock completion bash)   # in ~/.bashrc\n"
     "source <(rlock completion zsh)    # in ~/.zshrc, after compinit\n"
     "rlock completion fish >~/.config/fish/completions/rlock.fish"},
}};

constexpr auto kOwn = Section::command;
constexpr auto kGeneral = Section::general;

constexpr std::array<OptionRow, kOptCount> kOptions{{
    {Opt::nonblock, 'n', "nonblock", "", "", "", "do not wait: when the lock is busy, exit 75",
     kRun | kAcquire, kOwn},
    {Opt::wait, 'w', "wait", "DUR", "", "for ever",
     "wait at most this long, then exit 75; 0 is the same as -n", kRun | kAcquire, kOwn},
    {Opt::conflict_exit_code, 'E', "conflict-exit-code", "N", "", "75",
     "exit with N (0-255) instead when the lock is busy", kRun | kAcquire, kOwn},
    {Opt::shell_text, 'c', "", "TEXT", "", "",
     "run TEXT with $SHELL, else /bin/sh, instead of a COMMAND", kRun, kOwn},
    {Opt::ttl, 't', "ttl", "DUR", "", "30s", "the lease, at least 1s", kRun | kAcquire | kRenew,
     kOwn},
    {Opt::no_renew, '\0', "no-renew", "", "", "",
     "do not renew: the command is ended inside the first lease, exit 76; of 30s it has 22s", kRun,
     kOwn},
    {Opt::max_run, '\0', "max-run", "DUR", "", "none",
     "end a command that runs longer than this, exit 124", kRun, kOwn},
    {Opt::kill_after, 'k', "kill-after", "DUR", "", "5s or a sixth of the ttl, the lesser",
     "from TERM to KILL when rlock ends the command", kRun, kOwn},
    {Opt::on_lost, '\0', "on-lost", "terminate|ignore", "", "terminate",
     "if the lease is lost: terminate the command, or ignore (let it run, with a warning)", kRun,
     kOwn},
    {Opt::min_hold, '\0', "min-hold", "DUR", "", "0",
     "keep the lock at least this long after it was acquired, also when the command was quicker",
     kRun | kAcquire, kOwn},
    {Opt::slots, '\0', "slots", "N", "", "1",
     "allow up to N holders; if holders disagree, the smallest N applies", kRun | kAcquire, kOwn},
    {Opt::shared, 's', "shared", "", "", "",
     "take a shared lock: any number of shared holders, never beside an exclusive one",
     kRun | kAcquire, kOwn},
    {Opt::max_queue, '\0', "max-queue", "N", "", "none", "exit 75 at once where N wait already",
     kRun | kAcquire, kOwn},
    {Opt::no_reentrant, '\0', "no-reentrant", "", "", "",
     "inside a run that holds NAME already: wait like anyone else", kRun, kOwn},
    {Opt::wait_descendants, '\0', "wait-descendants", "", "", "",
     "hold the lock until everything that the command started has ended, too", kRun, kOwn},
    {Opt::format, '\0', "format", "native|plain|redisson", "", "native",
     "whose lock this is: rlock's own; that of redsync, redis-py or node-redlock; that of "
     "Redisson. "
     "In the last two NAME is the key itself",
     kRun | kAcquire | kRenew | kRelease | kStatus | kForce, kOwn},
    {Opt::fail_open, '\0', "fail-open", "", "", "",
     "when no server answers: warn, and run the command without the lock", kRun, kOwn},
    {Opt::hide_command, '\0', "hide-command", "", "", "",
     "do not store the command line, which others see in status (its first 200 bytes)",
     kRun | kAcquire, kOwn},
    {Opt::renew_while, '\0', "renew-while", "PID", "", "",
     "renew in the background while the process PID lives, then release", kAcquire, kOwn},
    {Opt::event_log, '\0', "event-log", "FILE", "", "",
     "append one JSON object a line to FILE for each event", kRun, kOwn},
    {Opt::owner, '\0', "owner", "ID", "", "", "only this owner",
     kRenew | kRelease | kStatus | kForce, kOwn},
    {Opt::token, '\0', "token", "N", "", "", "only the holder with this fencing token",
     kRenew | kForce, kOwn},
    {Opt::all, '\0', "all", "", "", "", "every holder", kForce, kOwn},
    {Opt::now, '\0', "now", "", "", "",
     "free the lock at once: the old and the next command may overlap", kForce, kOwn},
    {Opt::remove, '\0', "remove", "OWNER", "", "", "take this waiter out of the queue", kQueue,
     kOwn},
    {Opt::runs, 'n', "runs", "N", "", "20", "how many runs to show", kHistory, kOwn},
    {Opt::yes, '\0', "yes", "", "", "",
     "do not ask for confirmation; required when not on a terminal", kForce, kOwn},
    {Opt::strict, '\0', "strict", "", "", "", "exit 1 also where a point is only a warning",
     kDoctor, kOwn},
    {Opt::reason, '\0', "reason", "TEXT", "", "",
     "free text shown to others in status, queue and messages", kRun | kAcquire | kQueue | kForce,
     kOwn},
    {Opt::url, 'u', "url", "URL", "RLOCK_URL", "",
     "the server: redis://HOST[:PORT][/DB], rediss:// for TLS, unix:///PATH, local: and others; "
     "give three or more for a quorum",
     kEvery, kGeneral},
    {Opt::user, '\0', "user", "NAME", "RLOCK_USER", "", "ACL user, instead of the URL's", kEvery,
     kGeneral},
    {Opt::password_file, '\0', "password-file", "FILE", "RLOCK_PASSWORD, REDISCLI_AUTH", "",
     "read the password from FILE, at each connect", kEvery, kGeneral},
    {Opt::password_command, '\0', "password-command", "CMD", "", "",
     "the password is the first line that CMD prints, run by /bin/sh", kEvery, kGeneral},
    {Opt::cacert, '\0', "cacert", "FILE", "RLOCK_CACERT", "",
     "TLS: trust the authorities in FILE, instead of the system's", kEvery, kGeneral},
    {Opt::cacertdir, '\0', "cacertdir", "DIR", "RLOCK_CACERTDIR", "/etc/ssl/certs",
     "TLS: trust the authorities in DIR, hashed by openssl rehash", kEvery, kGeneral},
    {Opt::cert, '\0', "cert", "FILE", "RLOCK_CERT", "", "TLS: our client certificate", kEvery,
     kGeneral},
    {Opt::key, '\0', "key", "FILE", "RLOCK_KEY", "the FILE of --cert", "TLS: its private key",
     kEvery, kGeneral},
    {Opt::sni, '\0', "sni", "NAME", "RLOCK_SNI", "the URL's host",
     "TLS: the name to ask for, and to find in the certificate", kEvery, kGeneral},
    {Opt::insecure, '\0', "insecure", "", "RLOCK_INSECURE", "",
     "TLS: do not verify the server's certificate (prints a warning)", kEvery, kGeneral},
    {Opt::prefix, '\0', "prefix", "TEXT", "RLOCK_PREFIX", "rlock:", "what the keys begin with",
     kEvery, kGeneral},
    {Opt::connect_timeout, '\0', "connect-timeout", "DUR", "", "2s",
     "time limit to reach one server: DNS, connect, TLS and login", kEvery, kGeneral},
    {Opt::config, '\0', "config", "FILE", "RLOCK_CONFIG", "",
     "read this configuration file and no other; else rlock/rlock.toml in ~/.config, then in /etc",
     kEvery, kGeneral},
    {Opt::json, '\0', "json", "", "", "", "print JSON on standard output", kEvery & ~kRun,
     kGeneral},
    {Opt::quiet, 'q', "quiet", "", "", "", "print only errors", kEvery, kGeneral},
    {Opt::verbose, 'v', "verbose", "", "", "", "say on stderr what happens", kEvery, kGeneral},
    {Opt::help, 'h', "help", "", "", "", "this text", kEvery, kGeneral},
    {Opt::version, 'V', "version", "", "", "", "the version", kEvery, kGeneral},
}};

// Where commands share an option and it means something else under each.
struct OwnText {
  Opt id;
  unsigned commands;
  OptionText text;
};

constexpr OwnText kOwnTexts[] = {
    {Opt::ttl, kRun, {"the lease, at least 1s; it is renewed while the command runs", "30s"}},
    {Opt::ttl,
     kAcquire,
     {"the lease, at least 1s: longer than the steps take from one rlock renew to the next",
      "none; with --renew-while 30s"}},
    {Opt::ttl, kRenew, {"the lease from now on, at least 1s", "the length it had"}},
    {Opt::min_hold,
     kAcquire,
     {"keep the lock at least this long after it was acquired, also when it is released before",
      "0"}},
    {Opt::format,
     kStatus | kForce,
     {"whose lock this is: rlock's own; that of redsync, redis-py or node-redlock; that of "
      "Redisson. In the last two NAME is the key itself",
      "as found"}},
    {Opt::owner, kRenew | kRelease, {"the owner id that rlock acquire printed", ""}},
    {Opt::owner, kStatus, {"with -q: exit 0 only when this owner holds NAME", ""}},
    {Opt::owner, kForce, {"break the lock only where this owner holds it", ""}},
    {Opt::token,
     kRenew,
     {"with --ttl: put back a lease of this fencing token that ended or that the server lost", ""}},
    {Opt::token, kForce, {"break the lock only where its holder has this fencing token", ""}},
    {Opt::hide_command,
     kAcquire,
     {"do not store the command line of the process that asks, or of PID (its first 200 bytes)",
      ""}},
    {Opt::reason, kQueue, {"with --remove: free text that the removed waiter reports", ""}},
    {Opt::reason, kForce, {"free text that the holder and rlock history report", ""}},
    {Opt::quiet, kStatus, {"print nothing: the exit code says whether NAME is held", ""}},
    {Opt::quiet, kRun, {"print only errors; a skipped run is not an error", ""}},
};

constexpr bool in_order() {
  for (size_t i = 0; i < kOptions.size(); ++i) {
    if (static_cast<size_t>(kOptions[i].id) != i) return false;
  }
  for (size_t i = 0; i < kCommands.size(); ++i) {
    if (static_cast<size_t>(kCommands[i].id) != i) return false;
  }
  return true;
}
static_assert(in_order(), "row_of() takes the enumerator for the index");

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

std::span<const OptionRow> options() {
  return kOptions;
}
const OptionRow& row_of(Opt id) {
  return kOptions[static_cast<size_t>(id)];
}

OptionText text_for(const OptionRow& row, CommandId command) {
  for (const OwnText& own : kOwnTexts) {
    if (own.id == row.id && (own.commands & bit(command)) != 0) return own.text;
  }
  return {row.help, row.fallback};
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

}  // namespace rlock::cli
