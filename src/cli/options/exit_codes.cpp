#include "cli/options/exit_codes.hpp"

#include <cstdint>

#include "util/text.hpp"

namespace rlock::cli {
namespace {

constexpr ExitCodeRow kExitCodes[] = {
    {64, "wrong usage", "Wrong usage: an option, the NAME, a duration or the URL is not valid.",
     "Correct the word that the message names. rlock COMMAND --help lists the options of a "
     "command."},
    {65, "a key of the lock does not belong to rlock",
     "A key of this lock contains something that rlock did not write.",
     "Check the key that the message names. If another program uses it, choose another NAME or "
     "--prefix. Otherwise delete it."},
    {69, "no server answered",
     "No server answered in time, or the server cannot hold locks at this time. rlock run did not "
     "start the command. With --fail-open, if no server answered at all, the command runs without "
     "the lock instead, with a warning before and after it. A server counts as having answered "
     "even if it rejected the request, is not ready (LOADING, BUSY, a replica) or gave a waiter a "
     "position in the queue. In a quorum, one such server is enough. A sentinel does not count if "
     "the master that it names does not answer.",
     "Try again later, or let rlock try for longer with --wait or --connect-timeout. rlock doctor "
     "says what is wrong with the server. See WAITING FOR THE SERVER in rlock-run(1)."},
    {70, "internal error", "Internal error: rlock itself has a bug.",
     "Report the message, the command line, and what rlock version prints."},
    {71, "system error",
     "System error: the kernel refused rlock a process, memory or a file, or rlock could not write "
     "its output. If rlock's guard process dies, rlock stops the command and exits with this code, "
     "too.",
     "Check the limits of the host, its memory and its disks. If the message says that rlock "
     "stopped the command, find out how far it came before you run it again."},
    {75, "the lock is busy",
     "The lock is busy, a newer run superseded this one, or as many runs failed as --max-failures "
     "allows. rlock run did not start the command. From release: a live run holds the lock. "
     "--exit-code chooses other codes, and -E another code for a busy lock.",
     "rlock status NAME shows the holder. Try again later, or wait with -w. If the run was "
     "superseded, do not try again, because the newer run does the work. In a systemd unit, "
     "SuccessExitStatus=75 keeps a skip from being a failure."},
    {76, "the lease was lost",
     "The lease was lost while the command ran, and rlock stopped the command. From renew and "
     "release: this owner no longer holds the lock. If the command exited by itself, rlock keeps "
     "its exit code and prints a warning. The message says whether another run has held the lock "
     "since, if the server knows.",
     "Find out how far the command came before you run it again. rlock history NAME shows who "
     "broke the lock or held it since, and rlock doctor shows what is wrong with the server."},
    {77, "the server denied access",
     "The server denied access (password, user or permission), TLS verification failed on "
     "either side, or a sandbox forbids rlock to open sockets.",
     "Correct the password, the ACL rule or the certificate. rlock doctor prints the smallest ACL "
     "rule. See ACCESS in rlock(1). If a sandbox is the cause, run rlock outside it."},
    {78, "configuration error",
     "You have to edit something. No server is given, a file is bad, a key is unknown, or the URL "
     "is wrong. A wrong URL names another kind of server (a Sentinel, a node of a cluster, a web "
     "server), a replica, or a host, master or database that does not exist. rlock also exits with "
     "this code if another version of rlock has stored the lock in a form, or with a rule, that "
     "this version does not know.",
     "Edit what the message names: trying again does not help. rlock config shows each setting and "
     "where it comes from."},
    {124, "--max-run stopped the command",
     "rlock stopped the command and all its descendants because of --max-run.",
     "Find out why the command took so long, or give it a longer --max-run."},
    {126, "the command cannot be executed",
     "The command cannot be executed, or the interpreter that its first line names does not exist. "
     "The lock was released, without the cool-down of --min-hold.",
     "Make the file executable, and check its first line. A script must not have Windows line "
     "endings."},
    {127, "the command was not found",
     "There is no such command. The lock was released, without the cool-down of --min-hold.",
     "Write the whole path, because cron and systemd set another PATH than a shell."},
};

}  // namespace

std::span<const ExitCodeRow> exit_codes() {
  return kExitCodes;
}

std::optional<int> parse_exit_code(std::string_view word) {
  return util::parse_number<uint8_t>(word);
}

}  // namespace rlock::cli
