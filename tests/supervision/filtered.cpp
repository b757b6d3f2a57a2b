// filtered kill|ENOSYS|EPERM CALL... -- COMMAND...: runs the command under a seccomp filter that
// kills for these system calls, as SystemCallFilter= of systemd does, or lets them fail.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

const std::map<std::string, unsigned> kCalls{{"chroot", SYS_chroot},
                                             {"clone3", SYS_clone3},
                                             {"mlockall", SYS_mlockall},
                                             {"mount", SYS_mount},
                                             {"sched_setscheduler", SYS_sched_setscheduler},
                                             {"setsid", SYS_setsid},
                                             {"socket", SYS_socket}};
const std::map<std::string, unsigned> kActions{{"kill", SECCOMP_RET_KILL_PROCESS},
                                               {"ENOSYS", SECCOMP_RET_ERRNO | ENOSYS},
                                               {"EPERM", SECCOMP_RET_ERRNO | EPERM}};

sock_filter step(unsigned code, unsigned value, unsigned char skipped_if_not = 0) {
  return {static_cast<unsigned short>(code), 0, skipped_if_not, value};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 64;
  const unsigned action = kActions.at(argv[1]);
  std::vector<sock_filter> steps{step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  int at = 2;
  for (; argv[at] != std::string("--"); ++at) {
    steps.push_back(step(BPF_JMP | BPF_JEQ | BPF_K, kCalls.at(argv[at]), 1));
    steps.push_back(step(BPF_RET | BPF_K, action));
  }
  steps.push_back(step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog filter{static_cast<unsigned short>(steps.size()), steps.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) {
    std::perror("seccomp");
    return 71;
  }
  execvp(argv[at + 1], argv + at + 1);
  std::perror("exec");
  return 127;
}
