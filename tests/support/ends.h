// Two ends of a connection in network namespaces of our own, and networks between them.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "support/veth.h"

namespace skbtrail::test {

struct End {
  std::string space;    // name of its network namespace
  std::string address;  // IPv4
  std::string device;
  std::uint32_t outer_headers = 0;  // of what the device receives, as IP sees it: of a tunnel
};

// A socket belongs to the namespace it was made in, whoever uses it.
Fd socket_in(const std::string& space, int domain, int type, int protocol = 0);
void set_option(const Fd& fd, int level, int name, int value);

// A TCP connection, without Nagle's delay and without pacing: what is sent is sent by the call that
// sends it, as far as the window allows. Reads give up after 20 s.
struct Connection {
  Fd client, server;
  // As `skbtrail packets` names what the server and what the client receives.
  std::string request_flow, answer_flow;
};
// `mss`: the longest segments, options of TCP among them; 0: as long as the network allows.
Connection connect(const End& from, const End& to, int mss = 0);

// What the kernel has counted for a socket (TCP_INFO), once all that it has sent is acknowledged:
// of the stream, without headers.
struct TcpCounts {
  std::uint64_t bytes_sent = 0;  // those that were sent again, too
  std::uint64_t bytes_received = 0;
  std::uint64_t retransmits = 0;
};
TcpCounts acknowledged_counts(const Fd& fd);

// Have all segments so far come once and in order? Two CPUs that send for one socket, a task and a
// softirq, may well overtake each other.
bool in_order(const Connection& connection);

// A UDP socket at `to` and one that is connected to it.
struct Datagrams {
  Fd sender, receiver;
};
Datagrams datagrams(const End& from, const End& to);

// Every segment has a header of the same length: no selective acknowledgements.
void no_sack(const End& end);

// ethtool -K of the end's device; why it could not be done, empty when it was.
std::string offload(const End& end, const std::vector<std::string>& settings);
// ethtool -L: so many queues in both directions.
std::string channels(const End& end, unsigned number);

// A counter of the end's namespace, as nstat(8) names it.
std::uint64_t counted(const End& end, const std::string& counter);

// The two ends of a veth pair.
struct VethEnds {
  VethEnds();
  VethPair pair;
  End client, server;
};

// lo of a namespace, which is both ends.
struct LoEnds {
  LoEnds();
  VethPair pair;
  End client, server;
};

// Two namespaces with a third one between them, joined by two veth pairs: skbt0, skbtm0 and skbtm1,
// skbt1. The third one routes, or leaves it to somebody else to pass frames on.
enum class Middle { routes, is_silent };
class ChainEnds {
 public:
  explicit ChainEnds(Middle middle);
  ~ChainEnds();
  ChainEnds(const ChainEnds&) = delete;
  ChainEnds& operator=(const ChainEnds&) = delete;
  const std::string& middle() const { return spaces_[1]; }
  End client, server;

 private:
  std::string spaces_[3];
};

}  // namespace skbtrail::test
