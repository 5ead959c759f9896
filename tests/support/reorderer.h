// Passes frames between the two devices of a silent ChainEnds, and spoils the order of those with
// TCP data from client to server: every fifth waits until three others have passed it, every
// eleventh is passed on twice.
#pragma once

#include <atomic>
#include <thread>
#include <vector>

#include "support/deliveries.h"
#include "support/ends.h"

namespace skbtrail::test {

class Reorderer {
 public:
  // Throws when the devices cannot be used. Both ends must compute their check sums themselves
  // (ethtool -K tx off): a frame that goes through this process has none made later.
  explicit Reorderer(const ChainEnds& ends);
  ~Reorderer();
  Reorderer(const Reorderer&) = delete;
  Reorderer& operator=(const Reorderer&) = delete;

  // Ends it once all that lies here has been passed on. Where in the stream the bytes of each frame
  // with data were, in the order in which they were sent to the server.
  std::vector<ByteRange> stop();

 private:
  struct Frame {
    std::vector<char> bytes;
    std::uint32_t seq = 0;  // 0 when it has no data
    std::uint32_t payload = 0;
  };

  void work();
  void to_server(const Frame& frame);
  static Frame parse(const char* bytes, std::size_t size);

  Fd sides_[2];  // 0 towards the client
  std::atomic<bool> stopping_ = false;
  std::vector<ByteRange> passed_;
  std::uint32_t first_seq_ = 0;  // of the stream's first byte
  std::thread thread_;
};

}  // namespace skbtrail::test
