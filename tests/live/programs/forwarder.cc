// A TCP forwarder with a buffer of a given size: what `skbtrail syscalls` is tried on.
//
//   forwarder FROM-NAMESPACE ADDRESS PORT TO-NAMESPACE ADDRESS PORT BUFFER-BYTES
//
// Listens in one network namespace, connects in another, prints "ready" on standard error, takes
// one connection and copies it with read() and write() until its end.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void check(bool ok, const char* what) {
  if (ok) return;
  std::perror(what);
  std::exit(1);
}

int socket_in(const char* space) {
  const int fd = open((std::string("/run/netns/") + space).c_str(), O_RDONLY | O_CLOEXEC);
  check(fd >= 0 && setns(fd, CLONE_NEWNET) == 0, space);
  close(fd);
  const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(made >= 0, "socket");
  return made;
}

sockaddr_in address(const char* text, const char* port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  check(inet_pton(AF_INET, text, &at.sin_addr) == 1, text);
  return at;
}

void forward(int from, int to, std::vector<char>& buffer) {
  for (;;) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    check(got >= 0, "read");
    if (got == 0) return;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = write(to, buffer.data() + done, static_cast<std::size_t>(got - done));
      check(put > 0, "write");
      done += put;
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  check(argc == 8, "usage: forwarder FROM ADDRESS PORT TO ADDRESS PORT BUFFER-BYTES");
  const int listener = socket_in(argv[1]);
  const sockaddr_in here = address(argv[2], argv[3]);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  check(bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0, "bind");
  check(listen(listener, 1) == 0, "listen");
  const int to = socket_in(argv[4]);
  const sockaddr_in there = address(argv[5], argv[6]);
  check(connect(to, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0, "connect");
  check(write(STDERR_FILENO, "ready\n", 6) == 6, "ready");
  const int from = accept(listener, nullptr, nullptr);
  check(from >= 0, "accept");
  std::vector<char> buffer(static_cast<std::size_t>(std::atol(argv[7])));
  forward(from, to, buffer);
  return 0;
}
