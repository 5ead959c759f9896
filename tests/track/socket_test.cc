// The table of sockets.
#include "track/socket.h"

#include <gtest/gtest.h>

namespace skbtrail::test {
namespace {

using track::Socket;
using track::Sockets;

TEST(Sockets, one_in_the_place_of_another_knows_nothing_of_it) {
  Sockets sockets;
  Socket& first = sockets.make(1);
  first.address = 2;
  first.device = track::DeviceId{3};
  first.sport = first.dport = 4;
  first.headers = first.gaps = 5;
  first.in_gap = first.drained = first.closed = first.half_closed = first.doubtful = true;
  first.before.disordered = true;
  first.bytes.push(nullptr, 6);
  first.early_reads.push({});
  first.subflows = {7};
  sockets.forget(first);

  const Socket& second = sockets.make(8);
  ASSERT_EQ(&second, &first);
  EXPECT_EQ(second.key, 8U);
  EXPECT_EQ(second.address, 0U);
  EXPECT_FALSE(second.device);
  EXPECT_EQ(second.sport + second.dport, 0);
  EXPECT_EQ(second.headers, Socket::kNoHeaders);
  EXPECT_EQ(second.gaps, 0U);
  EXPECT_FALSE(second.in_gap || second.drained || second.closed);
  EXPECT_FALSE(second.half_closed);
  EXPECT_FALSE(second.doubtful);
  EXPECT_FALSE(second.before.disordered);
  EXPECT_TRUE(second.bytes.empty());
  EXPECT_TRUE(second.early_reads.empty());
  EXPECT_TRUE(second.subflows.empty());
}

}  // namespace
}  // namespace skbtrail::test
