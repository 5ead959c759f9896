#include "support/recording.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <thread>

#include "base/fd.h"

namespace skbtrail::test {
namespace {

// Sends back what one client sends, until that closes.
class EchoServer {
 public:
  EchoServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_.get(), generic, size) != 0 || listen(listener_.get(), 1) != 0 ||
        getsockname(listener_.get(), generic, &size) != 0) {
      throw std::runtime_error("cannot listen on lo");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~EchoServer() {
    shutdown(listener_.get(), SHUT_RDWR);  // ends an accept() that nobody came for
    thread_.join();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  int port() const { return port_; }

 private:
  void serve() {
    const Fd client(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 4096> chunk{};
    for (;;) {
      const ssize_t count = read(client.get(), chunk.data(), chunk.size());
      if (count <= 0) return;
      if (write(client.get(), chunk.data(), static_cast<std::size_t>(count)) != count) return;
    }
  }

  Fd listener_;
  int port_ = 0;
  std::thread thread_;
};

}  // namespace

std::string why_not_recordable() {
  const char* instances = "/sys/kernel/tracing/instances";
  if (geteuid() != 0) return "recording needs root";
  if (access(instances, W_OK) != 0) {
    return fmt::format("{} is not writable: no tracefs, or a read-only one", instances);
  }
  return "";
}

RunResult record_traffic(const std::filesystem::path& file, std::vector<std::string> options) {
  const EchoServer server;
  const std::string traffic = fmt::format(
      "exec 3<>/dev/tcp/127.0.0.1/{}; for i in {{1..100}}; do echo line $i >&3; read -ru 3; done; "
      "exec 3>&-; for i in {{1..40}}; do echo x > /dev/udp/127.0.0.1/9; done; exit 0",
      server.port());
  options.insert(options.begin(), {"record", "-o", file.string()});
  options.insert(options.end(), {"--", "bash", "-c", traffic});
  return skbtrail(options);
}

}  // namespace skbtrail::test
