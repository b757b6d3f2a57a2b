#include "cli/commands/waiting_line.hpp"

#include <unistd.h>

#include <algorithm>

#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

// Drawing is a courtesy: a terminal that does not take it at once goes without.
constexpr Millis kBound{0};

std::string ordinal(uint64_t n) {
  constexpr std::string_view kEndings[] = {"th", "st", "nd", "rd"};
  bool teens = n % 100 >= 11 && n % 100 <= 13;
  return std::to_string(n) + std::string(kEndings[teens || n % 10 > 3 ? 0 : n % 10]);
}

}  // namespace

void WaitingLine::draw(const std::string& text) {
  if (!is_foreground_terminal(STDERR_FILENO)) return;
  // One column stays free: some terminals wrap when the last one is written.
  std::string line = util::shortened("rlock: " + text, columns(STDERR_FILENO, 80) - 1);
  size_t length = util::character_count(line);
  std::string rest(drawn_ > length ? drawn_ - length : 0, ' ');
  write_stderr("\r" + line + rest, kBound);
  drawn_ = length;
}

void WaitingLine::erase() {
  if (drawn_ == 0) return;
  std::string blank = "\r";
  blank.append(drawn_, ' ').append("\r");
  write_stderr(blank, Millis(100));
  drawn_ = 0;
}

void WaitingReports::begin(TimePoint now) {
  if (!next_) next_ = now + first_;
}

bool WaitingReports::due(TimePoint now) {
  constexpr Millis kEvery{60'000};
  if (!next_ || now < *next_) return false;
  while (*next_ <= now) *next_ += kEvery;
  return true;
}

Millis WaitingReports::remaining(TimePoint now) const {
  if (!next_) return Millis(0);
  return std::max(Millis(1), std::chrono::ceil<Millis>(*next_ - now));
}

std::string waiting_text(const lock::LockName& name, const lock::Queued& queued, Millis age) {
  std::string text = "waiting for " + in_quotes(name.text());
  if (queued.position > 0) text += ", " + ordinal(queued.position) + " in line";
  if (!queued.holder) return text;
  lock::Holder holder = *queued.holder;
  holder.held += age;
  return text + ": " + holder_phrase(holder, TimeStyle::duration);
}

}  // namespace rlock::cli
