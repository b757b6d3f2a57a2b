#include "cli/ticket_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "util/clock.hpp"
#include "util/duration.hpp"
#include "util/process.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

using Json = nlohmann::ordered_json;

// What the file begins with, so that rlock empties no file of another kind.
constexpr std::string_view kHead = "{\"rlock_ticket\":";

Error ticket_error(const std::string& path, const std::string& why) {
  return {ErrorKind::config, util::format("--ticket \"{}\": {}", util::printable(path), why)};
}

// Opens a file of this user, which nobody else can read.
Result<util::Fd> open_own(const std::string& path) {
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  util::Fd file(open(path.c_str(), kFlags | O_CREAT | O_NOFOLLOW, 0600));
  struct stat info {};
  if (!file && errno == ELOOP) {
    // A link may be this user's own; nothing is created through it.
    if (lstat(path.c_str(), &info) == 0 && info.st_uid != geteuid()) {
      return ticket_error(path, "it is a symbolic link of another user");
    }
    file.reset(open(path.c_str(), kFlags));
  }
  if (!file || fstat(file.get(), &info) != 0) return ticket_error(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) return ticket_error(path, "it is not a file");
  if (info.st_uid != geteuid()) return ticket_error(path, "it belongs to another user");
  if ((info.st_mode & 077) != 0) fchmod(file.get(), 0600);
  return file;
}

// Locks the file without waiting. A lock of this kind ends with the process and is not inherited,
// so neither a guard nor a background renewer keeps it.
Result<bool> locked(const util::Fd& file, const std::string& path) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file.get(), F_SETLK, &whole) == 0) return true;
  if (errno == EACCES || errno == EAGAIN) return false;
  return ticket_error(path, std::strerror(errno));
}

int64_t boot_ms() {
  return std::chrono::duration_cast<Millis>(BootClock::now().time_since_epoch()).count();
}

// Text that is no UTF-8 is stored as JSON can store it.
std::string stored(const TicketPurpose& purpose, lock::Ticket ticket, const std::string& boot,
                   int64_t at_ms) {
  const Json json = {{"rlock_ticket", ticket.value},
                     {"name", util::to_utf8(purpose.name)},
                     {"prefix", util::to_utf8(purpose.prefix)},
                     {"databases", purpose.databases},
                     {"while_closed", purpose.while_closed},
                     {"boot", util::to_utf8(boot)},
                     {"at_ms", at_ms}};
  return json.dump() + "\n";
}

}  // namespace

TicketPurpose ticket_purpose(const lock::AcquireCall& call, const redis::OpenOptions& options) {
  std::string databases;
  for (const redis::Url& url : options.urls) {
    const redis::Server* server = redis::server_in(url);
    databases +=
        (databases.empty() ? "" : " ") + std::to_string(server == nullptr ? 0 : server->db);
  }
  return {call.name.text(), options.prefix, databases, call.while_closed};
}

Result<TicketFile> TicketFile::open(const std::string& path, TicketPurpose purpose) {
  TicketFile ticket(path, std::move(purpose));
  const std::string beside = path + ".lock";
  TRY(ticket.lock_, open_own(beside));
  TRY(const bool alone, locked(ticket.lock_, beside));
  if (!alone) {
    ticket.remark_ = util::format("--ticket: another rlock uses \"{}\" now", util::printable(path));
    return ticket;
  }
  TRY(ticket.file_, open_own(path));
  TRY_STATUS(ticket.take());
  return ticket;
}

// Reads the ticket, and empties the file before anything else can happen to this call.
Status TicketFile::take() {
  constexpr size_t kLongest = 8192;
  auto text = util::read_to_end(file_, kLongest);
  if (!text) return ticket_error(path_, text.error().text);
  if (text->empty()) return Done{};
  if (!text->starts_with(kHead)) return ticket_error(path_, "it contains something else");
  if (ftruncate(file_.get(), 0) != 0) return ticket_error(path_, std::strerror(errno));
  remark_ = util::format("--ticket: \"{}\" ", util::printable(path_));
  const Json json = Json::parse(*text, nullptr, false);
  const auto number = [&](const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found != json.end() && found->is_number_unsigned() ? found->get<int64_t>() : 0;
  };
  const lock::Ticket found{static_cast<uint64_t>(number("rlock_ticket"))};
  const int64_t at_ms = number("at_ms");
  if (*text != stored(purpose_, found, util::boot_id(), at_ms)) {
    remark_ += "is for another lock or host";
  } else if (boot_ms() - at_ms > kTicketLife.count() || boot_ms() < at_ms) {
    remark_ += "is older than " + util::format_duration(kTicketLife);
  } else {
    remark_.clear();
    ticket_ = found;
  }
  return Done{};
}

Status TicketFile::keep(lock::Ticket ticket) const {
  const std::string boot = util::boot_id();
  if (!file_ || boot.empty() || ticket.value == 0) {
    return ticket_error(path_, !file_         ? "another rlock uses it"
                               : boot.empty() ? "/proc does not say which boot this is"
                                              : "the server has given no position");
  }
  const std::string text = stored(purpose_, ticket, boot, boot_ms());
  const ssize_t written = pwrite(file_.get(), text.data(), text.size(), 0);
  if (written == static_cast<ssize_t>(text.size())) return Done{};
  const int error = written < 0 ? errno : ENOSPC;
  [[maybe_unused]] const int emptied = ftruncate(file_.get(), 0);
  return ticket_error(path_, std::strerror(error));
}

Result<std::optional<TicketFile>> open_ticket(const RunSettings& settings, const Session& session,
                                              Verbosity verbosity) {
  if (!settings.ticket) return std::optional<TicketFile>();
  TRY(auto file,
      TicketFile::open(*settings.ticket, ticket_purpose(settings.plan.claim, session.options())));
  if (!file.remark().empty() && verbosity != Verbosity::quiet) {
    print_message(file.remark() + "; the position in the queue is the last");
  }
  return std::optional(std::move(file));
}

bool keep_position(const std::optional<TicketFile>& file, const run::RunOutcome& outcome,
                   Verbosity verbosity) {
  const auto* late = std::get_if<lock::TimedOut>(&outcome);
  if (!file || late == nullptr) return false;
  const Status kept = file->keep(late->ticket);
  if (!kept && verbosity != Verbosity::quiet) {
    print_message("warning: " + kept.error().text + "; the position in the queue is lost");
  }
  return static_cast<bool>(kept);
}

}  // namespace rlock::cli
