// What a command sees of its world:
//   run_probe status           its signal mask and dispositions
//   run_probe signals          `ready`, then one line for each signal that it gets; ends with its
//   input
//   run_probe die NUMBER       nothing: it dies by that signal, without a core
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace {

int show_signal_state() {
  FILE* file = std::fopen("/proc/self/status", "re");
  if (file == nullptr) return 1;
  char line[256];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "Sig", 3) == 0 && std::strncmp(line, "SigQ", 4) != 0)
      std::fputs(line, stdout);
  }
  std::fclose(file);
  return 0;
}

// Through a handler, not a mask: a signal sent twice while handled must be seen twice.
void show(int signal) {
  char text[16];
  int length = std::snprintf(text, sizeof text, "%d\n", signal);
  [[maybe_unused]] ssize_t written = write(1, text, static_cast<size_t>(length));
}

int show_signals() {
  struct sigaction action {};
  action.sa_handler = show;
  action.sa_flags = SA_RESTART;
  for (int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGALRM}) {
    sigaction(signal, &action, nullptr);
  }
  [[maybe_unused]] ssize_t written = write(1, "ready\n", 6);
  char input[64];
  while (read(0, input, sizeof input) > 0) {
  }
  return 0;
}

int die(int signal) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  kill(getpid(), signal);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (std::strcmp(what, "status") == 0) return show_signal_state();
  if (std::strcmp(what, "signals") == 0) return show_signals();
  if (std::strcmp(what, "die") == 0 && argc > 2) return die(std::atoi(argv[2]));
  return 64;
}
