// Calls that end in all ways a call can end: begun again after a signal, timed out, failed, never.
#include <poll.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace {

void nothing(int) {}

void start_signals(suseconds_t every) {
  struct sigaction action = {};
  action.sa_handler = nothing;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval interval{{0, every}, {0, every}};
  setitimer(ITIMER_REAL, &interval, nullptr);
}

// What comes after 50 ms, from a child that no signal disturbs.
void write_late(int fd) {
  const timespec pause{0, 50'000'000};
  nanosleep(&pause, nullptr);
  if (write(fd, "x", 1) != 1) _exit(1);
  _exit(0);
}

}  // namespace

int main() {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t child = fork();
  if (child < 0) return 1;
  if (child == 0) write_late(ends[1]);
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
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (const pid_t other = vfork(); other == 0) {
    execl("/bin/true", "true", nullptr);
    _exit(1);
  } else if (other > 0) {
    waitpid(other, &status, 0);
  }
  return 0;
}
