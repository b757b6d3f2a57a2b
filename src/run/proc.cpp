#include "run/proc.hpp"

#include <cstdint>
#include <cstring>

namespace rlock::run {
namespace {

constexpr size_t kLongestPath = 48;

// "FOLDER/PID/FILE" without snprintf, which is not async-signal-safe.
struct ProcPath {
  ProcPath(pid_t pid, std::string_view file, std::string_view folder = "/proc/") noexcept {
    char digits[12];
    size_t count = 0;
    for (auto rest = static_cast<unsigned>(pid); count == 0 || rest > 0; rest /= 10) {
      digits[count++] = static_cast<char>('0' + rest % 10);
    }
    append(folder);
    while (count > 0) append({&digits[--count], 1});
    append("/");
    append(file);
  }

  char text[kLongestPath] = {};

 private:
  void append(std::string_view part) noexcept {
    std::memcpy(text + length_, part.data(), part.size());
    length_ += part.size();
  }
  size_t length_ = 0;
};

// Walks the fields of a stat line after the name, which may itself hold blanks and brackets.
class Fields {
 public:
  explicit Fields(std::string_view line) noexcept {
    size_t bracket = line.rfind(')');
    if (bracket != std::string_view::npos) rest_ = line.substr(bracket + 1);
  }
  char letter() noexcept {
    skip_blanks();
    char c = rest_.empty() ? '?' : rest_.front();
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }
  uint64_t number() noexcept {
    skip_blanks();
    uint64_t value = 0;
    while (!rest_.empty() && rest_.front() != ' ') {
      if (rest_.front() >= '0' && rest_.front() <= '9') {
        value = value * 10 + static_cast<uint64_t>(rest_.front() - '0');
      }
      rest_.remove_prefix(1);
    }
    return value;
  }
  pid_t pid() noexcept { return static_cast<pid_t>(number()); }
  void skip(int count) noexcept {
    while (count-- > 0) number();
  }
  bool empty() const noexcept { return rest_.empty(); }

 private:
  void skip_blanks() noexcept {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  std::string_view rest_;
};

// While it is walked a chain may change, but never grow without end.
constexpr int kLongestChain = 4096;

// Another process with that number began after the one that had it at `then` was gone.
bool born_by(const ProcessStat& stat, TimePoint then) noexcept {
  const auto ticks = static_cast<uint64_t>(sysconf(_SC_CLK_TCK));
  const auto since_boot = std::chrono::duration_cast<Millis>(then.time_since_epoch());
  return stat.born * 1000 / ticks <= static_cast<uint64_t>(since_boot.count());
}

}  // namespace

std::optional<ProcessStat> read_stat_in(int folder) noexcept {
  util::Fd file(openat(folder, "stat", O_RDONLY | O_CLOEXEC));
  char line[1024];
  ssize_t length = file ? read(file.get(), line, sizeof line) : -1;
  if (length <= 0) return std::nullopt;
  Fields fields({line, static_cast<size_t>(length)});
  if (fields.empty()) return std::nullopt;
  // Numbers of proc(5): state is 3.
  ProcessStat stat;
  stat.state = fields.letter();
  stat.parent = fields.pid();
  stat.group = fields.pid();
  stat.session = fields.pid();
  fields.skip(2);
  stat.flags = fields.number();  // 9
  fields.skip(10);
  stat.threads = fields.number();  // 20
  fields.skip(1);
  stat.born = fields.number();  // 22
  fields.skip(25);
  stat.arguments = fields.number();  // 48
  stat.arguments_end = fields.number();
  return stat;
}

std::optional<ProcessStat> read_stat(pid_t pid) noexcept {
  util::Fd folder(open_process(pid));
  return folder ? read_stat_in(folder.get()) : std::nullopt;
}

int open_process(pid_t pid) noexcept {
  return open(ProcPath(pid, "").text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

int open_children(int tasks, pid_t thread) noexcept {
  return openat(tasks, ProcPath(thread, "children", "").text, O_RDONLY | O_CLOEXEC);
}

bool ignores_in(int folder, int signal) noexcept {
  constexpr std::string_view kField = "\nSigIgn:\t";
  util::Fd file(openat(folder, "status", O_RDONLY | O_CLOEXEC));
  char text[4096];
  ssize_t length = file ? read(file.get(), text, sizeof text) : -1;
  const std::string_view status(text, length > 0 ? static_cast<size_t>(length) : 0);
  const size_t field = status.find(kField);
  if (field == status.npos) return false;
  uint64_t mask = 0;
  for (char c : status.substr(field + kField.size())) {
    if (c == '\n') break;
    mask = mask * 16 + static_cast<uint64_t>(c <= '9' ? c - '0' : c - 'a' + 10);
  }
  return (mask & uint64_t{1} << (signal - 1)) != 0;
}

std::string read_name(pid_t pid) {
  util::Fd file(open(ProcPath(pid, "comm").text, O_RDONLY | O_CLOEXEC));
  char name[64];
  ssize_t length = file ? read(file.get(), name, sizeof name) : -1;
  if (length <= 0) return {};
  return std::string(name, static_cast<size_t>(length - 1));  // without the newline
}

pid_t own_number_in_proc() noexcept {
  char target[16] = {};
  ssize_t length = readlink("/proc/self", target, sizeof target - 1);
  return length > 0 ? number_from(target) : -1;
}

bool descends_from(pid_t pid, pid_t ancestor) noexcept {
  constexpr int kDeepest = 256;
  pid_t at = pid;
  for (int level = 0; level < kDeepest && at > 1; ++level) {
    const auto stat = read_stat(at);
    const pid_t parent = stat ? stat->parent : 0;
    if (parent == ancestor) return true;
    if (parent == 0 && at == pid) return false;
    // One in between has just ended: its children have another parent now.
    at = parent == 0 ? pid : parent;
  }
  return false;
}

bool is_live_ancestor(pid_t pid, TimePoint then) noexcept {
  if (!proc_is_ours()) return false;
  auto stat = read_stat(getpid());
  for (int i = 0; stat && i < kLongestChain; ++i) {
    const pid_t parent = stat->parent;
    if (parent <= 0) return false;
    stat = read_stat(parent);
    if (parent == pid) return stat && stat->alive() && born_by(*stat, then);
  }
  return false;
}

int number_from(const char* name) noexcept {
  constexpr int kMost = 100'000'000;
  int value = 0;
  if (*name == '\0') return -1;
  for (; *name != '\0'; ++name) {
    if (*name < '0' || *name > '9' || value > kMost) return -1;
    value = value * 10 + (*name - '0');
  }
  return value;
}

}  // namespace rlock::run
