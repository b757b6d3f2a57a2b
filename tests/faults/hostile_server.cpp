// The real rlock on a real terminal, before a server that means it no good: bounded memory, an exit
// code, nothing raw, no password.
#include <doctest/doctest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <stdexcept>
#include <thread>

#include "fuzz/property.hpp"
#include "support/fake_server.hpp"
#include "support/job.hpp"
#include "util/clock.hpp"
#include "util/fd.hpp"

using namespace rlock;
using test::FakeServer;

namespace {

using Words = std::vector<std::string>;

constexpr Millis kPatience{180'000};
const std::string kAnswered = "120s";  // the connect timeout where the server answers at once
// Of one reply 16 MiB are read; the copies of it (as text, escaped, as JSON) make several times
// that.
constexpr size_t kMemory = size_t{256} << 20;
const std::string kEvil =
    "\x1b]0;evil\x07\x1b[31m\xe2\x80\xae\xc2\x9b"
    "2J\xff\r\n\b";

// The result of a program with a terminal of its own for stdin, stdout and stderr.
struct Shown {
  std::string text;  // all that reached the terminal
  int code = -1;     // as a shell shows it; -1: it had to be ended
  Millis took{0};
};

// False at the end: the last one on the terminal is gone, or patience is.
bool read_some(int terminal, std::string& text, TimePoint until) {
  pollfd readable{terminal, POLLIN, 0};
  if (poll(&readable, 1, poll_timeout(BootClock::now(), until)) <= 0) return false;
  char chunk[16384];
  ssize_t got = read(terminal, chunk, sizeof chunk);
  if (got <= 0) return false;
  text.append(chunk, static_cast<size_t>(got));
  return true;
}

// Runs argv to its end, with kPatience and kMemory (of address space) at most.
Shown on_terminal(Words argv) {
  std::vector<char*> words;
  for (std::string& word : argv) words.push_back(word.data());
  words.push_back(nullptr);
  const TimePoint start = BootClock::now();
  int master = -1;
  pid_t pid = forkpty(&master, nullptr, nullptr, nullptr);
  if (pid == 0) {
    rlimit limit{kMemory, kMemory};
    setrlimit(RLIMIT_AS, &limit);
    execv(words[0], words.data());
    _exit(127);
  }
  if (pid < 0) throw std::runtime_error("no terminal can be opened here");
  util::Fd terminal(master);
  Shown shown;
  while (read_some(terminal.get(), shown.text, start + kPatience)) continue;
  shown.took = std::chrono::duration_cast<Millis>(BootClock::now() - start);
  bool late = shown.took >= kPatience;
  if (late) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!late) shown.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return shown;
}

std::string bulk(const std::string& text) {
  return "$" + std::to_string(text.size()) + "\r\n" + text + "\r\n";
}
std::string number(long long value) {
  return ":" + std::to_string(value) + "\r\n";
}
std::string array(const Words& elements) {
  std::string text = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) text += element;
  return text;
}

std::string record_of(const std::string& text) {
  std::string escaped;
  for (unsigned char c : text) {
    char hex[8];
    std::snprintf(hex, sizeof hex, "\\u%04x", static_cast<unsigned>(c));
    escaped += hex;
  }
  return "{\"host\":\"" + escaped + "\",\"user\":\"" + text + "\",\"pid\":-1,\"command\":\"" +
         escaped + "\",\"reason\":\"" + escaped + "\"}";
}

// Names and values in turn, behind a word if there is one.
std::string facts(const Words& named, const std::string& word = {}) {
  Words elements;
  if (!word.empty()) elements.push_back(bulk(word));
  for (size_t i = 0; i + 1 < named.size(); i += 2) {
    elements.push_back(bulk(named[i]));
    elements.push_back(named[i + 1]);
  }
  return array(elements);
}

std::string holder(const std::string& record) {
  return facts(
      {"owner",  bulk(kEvil),       "state",   bulk(kEvil),       "limit",      number(-1),
       "token",  number(INT64_MAX), "since",   number(INT64_MIN), "held",       number(INT64_MAX),
       "left",   number(INT64_MIN), "entries", number(-7),        "responsive", bulk("9"),
       "record", bulk(record),      "ttl",     number(INT64_MAX), "slot",       number(-1)});
}

std::string waiter(const std::string& record) {
  return facts({"owner", bulk(kEvil), "limit", number(0), "since", number(INT64_MIN), "waited",
                number(INT64_MIN), "record", bulk(record), "ticket", number(-1)});
}

std::string snapshot(const std::string& record, int more) {
  return facts({"known",         number(1),
                "live_holders",  number(INT64_MAX),
                "holders",       array({holder(record)}),
                "live_waiters",  number(-1),
                "waiters",       array({waiter(record)}),
                "more_holders",  number(more),
                "more_waiters",  number(more),
                "closure",       bulk(kEvil),
                "failed_at",     number(INT64_MAX),
                "failed_took",   number(INT64_MIN),
                "failed_how",    bulk(kEvil),
                "failed_record", bulk(record)});
}

std::string history(const std::vector<std::string>& rows) {
  return facts({"known", number(1), "rows", array(rows)});
}

// Everything that rlock asks with takes up one of these.
FakeServer::Script always(const std::string& mark, const std::string& reply) {
  return [=](FakeServer::Peer& peer, int) {
    if (!peer.next("SETNAME\r\n$5\r\nrlock\r\n")) return;
    peer.send("+OK\r\n+OK\r\n");
    while (peer.next(mark)) peer.send(reply);
  };
}

Shown before(const FakeServer& server, Words words, const std::string& timeout = "300ms") {
  words.insert(words.begin(), RLOCK);
  words.insert(words.end(), {"--connect-timeout", timeout, "--url",
                             "redis://:canary-secret@127.0.0.1:" + std::to_string(server.port())});
  return on_terminal(words);
}

// Without the ends of lines that the terminal makes, and the returns of rlock's live line.
std::string plain(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    std::string after = text.substr(i + 1, 7);
    bool own = after.empty() || after[0] == '\n' || after[0] == ' ' || after == "rlock: ";
    if (text[i] != '\r' || !own) out += text[i];
  }
  return out;
}

void check(const Shown& shown) {
  CAPTURE(shown.text.substr(0, 500));
  CHECK(shown.code >= 0);
  CHECK(fuzz::harmless(plain(shown.text)));
  CHECK(shown.text.find("canary") == std::string::npos);
}

const Words kCommands[] = {{"status", "x"},
                           {"status"},
                           {"status", "--json", "x"},
                           {"queue", "x"},
                           {"queue", "--json", "x"},
                           {"history", "x"},
                           {"history", "--json", "x"},
                           {"force-unlock", "--yes", "x"},
                           {"release", "x", "--owner", "0123456789abcdef0123456789abcdef"},
                           {"renew", "x", "--owner", "0123456789abcdef0123456789abcdef"},
                           {"acquire", "-n", "x", "--ttl", "1m"},
                           {"-v", "run", "-n", "x", "-c", "true"}};

// The commands do not wait for each other.
void for_each_command(const std::function<void(const Words&)>& story) {
  std::vector<std::thread> threads;
  for (const Words& words : kCommands) {
    threads.emplace_back([&story, &words] {
      CAPTURE(words[0]);
      try {
        story(words);
      } catch (const std::exception& error) {
        FAIL_CHECK(error.what());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

TEST_CASE("an invalid or oversized reply is refused by every command: 69, memory bounded") {
  const std::string nested = [] {
    std::string text;
    for (int i = 0; i < 10'000; ++i) text += "*1\r\n";
    return text;
  }();
  const std::pair<std::string, std::string> replies[] = {
      {"a huge array", "*100000000\r\n"},
      {"a huge string", "$4000000000\r\n" + std::string(size_t{20} << 20, 'x')},
      {"nested arrays", nested},
      {"not Redis", "HTTP/1.1 400 \x1b[31m\r\n\r\n"},
      {"a huge error", "-ERR " + std::string(size_t{8} << 20, '\x1b') + "\r\n"},
      {"an evil error", "-" + kEvil.substr(0, kEvil.size() - 3) + "\r\n"},
      {"an evil line", "+" + kEvil.substr(0, kEvil.size() - 3) + "\r\n"}};
  for_each_command([&](const Words& words) {
    for (const auto& [what, reply] : replies) {
      CAPTURE(what);
      FakeServer server(always("\r\n", reply));
      Shown shown = before(server, words);
      check(shown);
      CHECK(shown.code == 69);
      CHECK(shown.text.size() < 4096);
    }
  });
}

TEST_CASE("every command tries again after a truncated reply, and then refuses it") {
  for_each_command([](const Words& words) {
    FakeServer server([](FakeServer::Peer& peer, int) {
      peer.next("SETNAME");
      peer.send("+OK\r\n+OK\r\n*7\r\n:1\r\n$1000\r\n\x1b[31m");
    });
    Shown shown = before(server, words, "5s");  // for a second try on a busy machine, too
    check(shown);
    CHECK(shown.code == 69);
    CHECK(server.connections() > 1);
  });
}

struct HostileReply {
  Words words;
  const char* mark;
  std::string reply;
  int code;
};

TEST_CASE("well-formed replies with hostile content are shown escaped") {
  const std::string record = record_of(kEvil);
  const std::string huge = record_of(std::string(size_t{200} << 10, '\x1b'));
  const std::string run =
      facts({"kind", bulk("run"), "token", number(-1), "since", bulk("99999999999999999999"),
             "ended", bulk("x"), "how", bulk(kEvil), "result", bulk(kEvil), "note", bulk(kEvil),
             "record", bulk(record)});
  const std::string skip = facts({"kind", bulk("skip"), "times", bulk(kEvil), "record", run});
  const HostileReply rows[] = {
      {{"status", "x"}, "EVALSHA", snapshot(record, 0), 0},
      {{"status", "x"}, "EVALSHA", snapshot(huge, 0), 0},
      {{"status", "--json", "x"}, "EVALSHA", snapshot(record, 0), 0},
      {{"queue", "x"}, "EVALSHA", snapshot(record, 0), 0},
      {{"queue", "--json", "x"}, "EVALSHA", snapshot(huge, 0), 0},
      {{"history", "x"}, "EVALSHA", history({run, bulk(kEvil), skip}), 0},
      {{"history", "--json", "x"}, "EVALSHA", history({run, run}), 0},
      {{"-v", "run", "-n", "x", "-c", "true"},
       "EVALSHA",
       facts({"waiters", number(-1), "holder", holder(record)}, "busy"),
       75},
      {{"-v", "run", "-w", "1", "x", "-c", "true"},
       "EVALSHA",
       facts({"kind", bulk("removed"), "note", bulk(record)}, "gone"),
       75},
      {{"acquire", "-n", "--ttl", "1m", "x"},
       "EVALSHA",
       facts({"waiters", number(-1), "holder", holder(huge)}, "busy"),
       75},
  };
  for (const HostileReply& row : rows) {
    CAPTURE(row.words[0]);
    CAPTURE(row.reply.substr(0, 100));
    FakeServer server(always(row.mark, row.reply));
    Shown shown = before(server, row.words, kAnswered);
    check(shown);
    CHECK(shown.code == row.code);
  }
}

TEST_CASE("a hostile name in a listing is shown escaped") {
  FakeServer server([](FakeServer::Peer& peer, int) {
    if (!peer.next("SETNAME\r\n$5\r\nrlock\r\n")) return;
    peer.send("+OK\r\n+OK\r\n");
    while (peer.next("SCAN")) {
      peer.send(array({bulk("0"), array({bulk("rlock:{" + kEvil + "}:meta")})}));
      if (!peer.next("HGET")) return;
      peer.send(bulk("1"));
    }
  });
  Shown shown = before(server, {"status"}, kAnswered);
  check(shown);
  CHECK(shown.code == 0);
}

TEST_CASE("a listing without an end is abandoned, and its memory is bounded") {
  const std::string record(size_t{100} << 10, 'x');
  struct Row {
    Words words;
    FakeServer::Script script;
  };
  auto scan = [](FakeServer::Peer& peer, int connection) {
    if (!peer.next("SETNAME")) return;
    peer.send("+OK\r\n+OK\r\n");
    for (int page = 0; peer.next("SCAN"); ++page) {
      Words names;
      for (int i = 0; i < 1'000; ++i) {
        names.push_back(bulk("rlock:{" + std::to_string(connection) + "." + std::to_string(page) +
                             "." + std::to_string(i) + "}:holders"));
      }
      peer.send(array({bulk(std::to_string(page + 1)), array(names)}));
    }
  };
  const Row rows[] = {{{"status", "x"}, always("EVALSHA", snapshot(record, 1))},
                      {{"queue", "x"}, always("EVALSHA", snapshot(record, 1))},
                      {{"force-unlock", "--yes", "x"}, always("EVALSHA", snapshot(record, 1))},
                      {{"status"}, scan}};
  for (const Row& row : rows) {
    CAPTURE(row.words[0]);
    FakeServer server(row.script);
    Shown shown = before(server, row.words, kAnswered);
    check(shown);
    CHECK(shown.code == 69);
    CHECK(shown.text.find("the listing exceeds") != std::string::npos);
  }
}

TEST_CASE("a listing whose cursor comes back is an error") {
  for (const Words& cursors : {Words{"7"}, Words{"7", "8", "9"}, Words{"word"}}) {
    FakeServer server([&](FakeServer::Peer& peer, int) {
      if (!peer.next("SETNAME")) return;
      peer.send("+OK\r\n+OK\r\n");
      for (size_t page = 0; peer.next("SCAN"); ++page) {
        peer.send(array({bulk(cursors[page % cursors.size()]), array({})}));
      }
    });
    Shown shown = before(server, {"status"}, kAnswered);
    check(shown);
    CHECK(shown.code == 69);
    CHECK(shown.text.find("SCAN does not end") != std::string::npos);
  }
}

TEST_CASE("a server that always answers \"sweep first\" does not prolong a bounded wait") {
  FakeServer server(always("EVALSHA", array({bulk("more")})));
  for (const Words& words :
       {Words{"run", "-n", "x", "-c", "true"}, {"run", "-w", "1", "x", "-c", "true"}}) {
    Shown shown = before(server, words);
    check(shown);
    CHECK(shown.took < Millis(30'000));
  }
}

TEST_CASE("a password that a server quotes back is shown nowhere") {
  for_each_command([](const Words& words) {
    for (const std::string code : {"ERR", "NOPERM", "WRONGTYPE", "LOADING"}) {
      CAPTURE(code);
      FakeServer server(always("\r\n", "-" + code + " you sent canary-secret\r\n"));
      test::Scratch folder;
      Words all = words;
      if (words[0] == "-v") all.insert(all.begin(), {"--event-log", folder.file("events")});
      Shown shown = before(server, all);
      CHECK(shown.code >= 64);
      check(shown);
      CHECK(test::read_file(folder.file("events")).find("canary") == std::string::npos);
    }
  });
}
