#include "redis/net/secret.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "util/detached.hpp"
#include "util/fd.hpp"
#include "util/file.hpp"
#include "util/text.hpp"

namespace rlock::redis {
namespace {

Error bad_file(const std::string& path, const std::string& why) {
  return {ErrorKind::config,
          "cannot read the password file \"" + util::printable(path) + "\": " + why};
}

// Other users may read it, since a secret that is mounted into a container is 0444. A user who can
// write it chooses how rlock logs in.
Status check_writers(const std::string& path, const util::Fd& file) {
  struct stat info {};
  if (fstat(file.get(), &info) != 0) return bad_file(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode) || (info.st_mode & 022) == 0) return Done{};
  return bad_file(path, "other users can write to it; run chmod go-w " + util::printable(path));
}

Result<std::string> read_secret(const std::string& path, int more_flags = 0) {
  constexpr size_t kLongest = size_t{64} * 1024;  // the path may be /dev/zero
  util::Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | more_flags));
  if (!file) return bad_file(path, std::strerror(errno));
  TRY_STATUS(check_writers(path, file));
  auto text = util::read_to_end(file, kLongest);
  if (!text) return bad_file(path, text.error().text);
  if (text->ends_with('\n')) text->pop_back();
  if (text->empty()) return bad_file(path, "it is empty");
  return text;
}

class FileSecret final : public Secret {
 public:
  FileSecret(std::string path, std::string first)
      : path_(std::move(path)), last_(std::move(first)) {}

  std::string current() override {
    // A pipe is empty by now: its password stays in use, and nothing waits for another writer.
    auto text = read_secret(path_, O_NONBLOCK);
    std::lock_guard lock(mutex_);
    if (text) last_ = *std::move(text);
    return last_;
  }
  bool fetch(std::string_view) override { return false; }
  bool fetched() const override { return true; }
  int fd() const override { return -1; }

 private:
  const std::string path_;
  std::mutex mutex_;
  std::string last_;
};

// The command runs on a thread of its own, which owns all that it uses.
class CommandSecret final : public Secret {
 public:
  CommandSecret(std::string command, std::string first) : shared_(std::make_shared<Shared>()) {
    shared_->command = std::move(command);
    shared_->last = std::move(first);
    shared_->event.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }

  std::string current() override {
    std::lock_guard lock(shared_->mutex);
    return shared_->last;
  }

  bool fetch(std::string_view used) override {
    constexpr Millis kMinInterval{5000};
    std::lock_guard lock(shared_->mutex);
    if (shared_->running) return true;
    const TimePoint now = BootClock::now();
    if (shared_->last != used || (shared_->began && now - *shared_->began < kMinInterval))
      return false;
    auto* share = new std::shared_ptr<Shared>(shared_);
    shared_->running = util::start_detached(run, share) == 0;
    if (!shared_->running) delete share;
    if (!shared_->running) return false;
    shared_->began = now;
    eventfd_t before = 0;
    eventfd_read(shared_->event.get(), &before);
    return true;
  }

  bool fetched() const override {
    std::lock_guard lock(shared_->mutex);
    return !shared_->running;
  }
  int fd() const override { return shared_->event.get(); }

 private:
  struct Shared {
    std::string command;
    util::Fd event;
    std::mutex mutex;
    std::string last;
    std::optional<TimePoint> began;  // of the last run on the thread
    bool running = false;
  };

  static void* run(void* argument) {
    std::unique_ptr<std::shared_ptr<Shared>> share(static_cast<std::shared_ptr<Shared>*>(argument));
    Shared& shared = **share;
    auto secret = run_secret_command(shared.command);
    std::lock_guard lock(shared.mutex);
    if (secret) shared.last = *std::move(secret);
    shared.running = false;
    eventfd_write(shared.event.get(), 1);
    return nullptr;
  }

  std::shared_ptr<Shared> shared_;
};

}  // namespace

Result<std::shared_ptr<Secret>> secret_in_file(const std::string& path) {
  TRY(auto first, read_secret(path));
  return std::shared_ptr<Secret>(std::make_shared<FileSecret>(path, std::move(first)));
}

Result<std::shared_ptr<Secret>> secret_of_command(const std::string& command) {
  TRY(auto first, run_secret_command(command));
  return std::shared_ptr<Secret>(std::make_shared<CommandSecret>(command, std::move(first)));
}

}  // namespace rlock::redis
