#include "cli/commands/renewal_notice.hpp"

#include "cli/commands/run_exit.hpp"
#include "cli/output/console.hpp"
#include "cli/output/messages.hpp"
#include "util/duration.hpp"
#include "util/text.hpp"

namespace rlock::cli {
namespace {

class NoticeText {
 public:
  NoticeText(const NoticeSubject& subject, bool quiet)
      : lock_(in_quotes(subject.name) + " at " + util::printable(subject.server)),
        process_("process " + std::to_string(subject.pid)),
        quiet_(quiet) {}

  std::string operator()(const run::LeaseEnd& end) const {
    return lock_ + " is no longer held: " + lease_end_text(end) + "; the steps of " + process_ +
           " run without the lock";
  }

  std::string operator()(const run::Broken& broken) const {
    const std::string text =
        lock_ + ": " + lost_phrase(broken.how) + "; nobody ends the steps of " + process_ + ": ";
    if (!broken.left) return text + "another may hold the lock now";
    return text + "the next holder starts when that process ends, or in " +
           util::format_duration(*broken.left) + " when the lease ends";
  }

  std::string operator()(const run::EndedEarly& early) const {
    if (quiet_) return {};
    return "warning: " + lock_ + ": released, since " + process_ + " (--renew-while) ended after " +
           util::format_duration(early.after) +
           "; if later steps need the lock, name a process that outlives them, such as $PPID";
  }

 private:
  const std::string lock_;
  const std::string process_;
  const bool quiet_;
};

}  // namespace

std::string notice_line(const run::Notice& notice, const NoticeSubject& subject, bool quiet) {
  const std::string text = std::visit(NoticeText(subject, quiet), notice);
  return text.empty() ? text : message_line(text);
}

}  // namespace rlock::cli
