// What `skbtrail packets` says of deliveries, against what the readers logged themselves.
//
// The obvious way: the packets of one direction in the order in which they arrived carry the bytes
// of the stream one after the other, unless the network says otherwise, and the log has which call
// took which byte. The call that took a packet's last byte must be the one that the packet was
// delivered to.
#pragma once

#include <boost/json.hpp>
#include <map>
#include <string>
#include <vector>

#include "support/background.h"
#include "support/call_log.h"
#include "support/ends.h"
#include "support/files.h"

namespace skbtrail::test {

// A recording of the profile `net` from its construction on.
class Recording {
 public:
  explicit Recording(const std::vector<std::string>& options = {});
  // Events must not have been lost, unless that is what the test is about.
  void stop(bool may_lose = false);
  const Background& recorder() const { return recorder_; }
  const std::string& file() const { return file_; }
  // The packets of `skbtrail packets --format json`, after stop().
  const std::vector<boost::json::object>& packets() const { return packets_; }
  // When each task was switched to, as the events say it: read by a plain walk, after stop().
  const std::map<pid_t, std::vector<Nanoseconds>>& switches() const { return switches_; }

 private:
  TemporaryFolder folder_;
  std::string file_ = folder_ / "trace.dat";
  Background recorder_;
  std::vector<boost::json::object> packets_;
  std::map<pid_t, std::vector<Nanoseconds>> switches_;
};

// A packet's leg that was received last, as far as the tests look at it.
struct Arrival {
  std::uint64_t id = 0;
  std::uint32_t len = 0;
  std::string outcome, confidence, call;
  std::uint64_t merged_into = 0, parent = 0;
  pid_t pid = 0;
  pid_t sender = 0;  // of the first leg; 0 when nobody is known
  std::size_t legs = 0;
  std::map<std::string, Nanoseconds> stages;  // of this leg
  Nanoseconds send = 0;                       // of the first
  Nanoseconds birth = 0, begin = 0, total = 0;
  std::uint32_t payload = 0;
  bool crossed_loss = false;
  // The events hold a switch to its reader between waking and copy. Kernels under some hypervisors
  // write none when a CPU leaves its idle task (seen on 6.18: 0 of 1,546 with nothing but
  // /sys/kernel/tracing in use): then there is no `run` to be known.
  bool reader_switched_to = false;

  bool has(const std::string& stage) const { return stages.contains(stage); }
  Nanoseconds at(const std::string& stage) const {
    const auto found = stages.find(stage);
    return found == stages.end() ? 0 : found->second;
  }
};

// The packets with data that `end` received of a TCP flow, in the order of their arrival.
std::vector<Arrival> tcp_arrivals(const Recording& recording, const End& end,
                                  const std::string& flow);
// The UDP datagrams that `end` received with a payload of `payload` bytes or more.
std::vector<Arrival> udp_arrivals(const Recording& recording, const End& end,
                                  std::uint32_t payload);

// Where in the stream an arrival's bytes are, where that is not the order of arrival.
struct ByteRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

struct Compared {
  std::size_t packets = 0;          // with data
  std::uint64_t bytes = 0;          // in them, each counted once
  std::size_t brought_nothing = 0;  // packets with bytes that had come before
  std::uint64_t read = 0;           // bytes, by the log
  std::size_t right = 0;            // delivered to the call that took their last byte, in its time
  std::size_t wrong = 0;            // said to be certain, and delivered to another call or to none
  std::size_t unknown = 0;          // said to be unknown
  std::size_t inferred = 0;         // wrong, but not said to be certain
  std::size_t socket_level = 0;     // of the right ones
  std::vector<std::size_t> call;    // per packet: the index of its call in the log
  std::string first_wrong;

  std::string text() const;
};

// `arrivals[i]` must be delivered to the call of `log` that took the last byte of it.
Compared compare_stream(const std::vector<Arrival>& arrivals, const std::vector<LoggedCall>& log,
                        const std::vector<ByteRange>& ranges = {});
// Datagram `i` arrived as number `i`; or, with `counts`, arrival `i` is the next counts[i] of them:
// all are read, and the last by the call that it must be delivered to, or it is not delivered.
Compared compare_datagrams(const std::vector<Arrival>& arrivals, const std::vector<LoggedCall>& log,
                           const std::vector<std::uint32_t>& counts = {});

// Every byte sent is in a packet, every packet was delivered to the call that took its last byte;
// of a few the tracker says that it does not know.
void expect_all_right(const std::string& what, const Compared& compared, std::uint64_t bytes);

}  // namespace skbtrail::test
