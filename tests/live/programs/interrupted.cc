// Calls that end in all ways a call can end: begun again after a signal, timed out, failed, never.
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

namespace {

int ends[2];

// The program reads until it has been interrupted several times, however late it begins.
void write_at_last(int) {
  static volatile sig_atomic_t signals = 0;
  signals = signals + 1;
  if (signals == 10 && write(ends[1], "x", 1) != 1) _exit(1);
}

void start_signals(suseconds_t every) {
  struct sigaction action = {};
  action.sa_handler = write_at_last;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval interval{{0, every}, {0, every}};
  setitimer(ITIMER_REAL, &interval, nullptr);
}

}  // namespace

int main() {
  if (pipe(ends) != 0) return 1;
  start_signals(2000);
  char byte = 0;
  if (read(ends[0], &byte, 1) != 1) return 1;  // ERESTARTSYS
  pollfd nothing_comes{ends[0], POLLIN, 0};
  poll(&nothing_comes, 1, 20);  // ERESTART_RESTARTBLOCK, for the program EINTR
  const timespec pause{0, 20'000'000};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, nullptr);
  const itimerval off{};
  setitimer(ITIMER_REAL, &off, nullptr);
  for (int i = 0; i < 3; ++i) poll(&nothing_comes, 1, 0);   // empty
  for (int i = 0; i < 2; ++i) poll(&nothing_comes, 1, 10);  // timeouts
  if (read(-1, &byte, 1) >= 0) return 1;                    // EBADF
  int status = 0;
  if (const pid_t other = vfork(); other == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  } else if (other > 0) {
    waitpid(other, &status, 0);
  }
  return 0;
}
