// Sockets that are known by their cookie.
#include <gtest/gtest.h>

#include "event/probe.h"
#include "track/delivery_script.h"
#include "track/socket.h"

namespace skbtrail::test {
namespace {

using track::Confidence;
using track::Outcome;
using track::Stage;

// Before 6.12 tcp_probe tells a socket's cookie and not its address, and the events of a socket's
// end its address only.
struct SocketsByCookie : DeliveryScript {
  void arrive_by_cookie(Nanoseconds time, SkbAddr address, std::uint64_t cookie) {
    stack(time, address, 100);
    TcpProbe event = probe(address, 100);
    event.skaddr.reset();
    event.sock_cookie = cookie;
    tracker.on(at(time + 1), event);
  }
  void read(Nanoseconds time, SkbAddr address, std::uint64_t cookie, SockAddr sk = kSocket,
            std::int32_t len = 100) {
    enter(time);
    copy(time + 1, address, len);
    tracker.on(reader(time + 2), TcpRcvSpaceAdjust{sk, cookie});
    exit(time + 3, len);
  }
  // Where that event is not recorded.
  void read_unnamed(Nanoseconds time, SkbAddr address, std::int32_t len) {
    enter(time);
    copy(time + 1, address, len);
    exit(time + 3, len);
  }
  void close(Nanoseconds time, SockAddr sk = kSocket) {
    InetSockSetState event;
    event.skaddr = sk;
    event.oldstate = 1;
    event.newstate = kTcpClose;
    tracker.on(reader(time), event);
  }
  static constexpr SockAddr kOther{0xffff888200000800};
};

TEST_F(SocketsByCookie, what_nobody_read_ends_with_the_socket) {
  arrive_by_cookie(100, skb(1), 5);
  read(200, skb(1), 5);
  arrive_by_cookie(300, skb(2), 5);
  close(400);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(2).outcome, Outcome::unknown);
  EXPECT_EQ(leg(2).cause, track::UnknownCause::socket_closed);
}

// An address goes on to another socket; the first one's end was not seen.
TEST_F(SocketsByCookie, an_address_is_the_last_ones_who_had_it) {
  arrive_by_cookie(100, skb(1), 5);
  read(200, skb(1), 5);
  arrive_by_cookie(300, skb(2), 5);
  arrive_by_cookie(400, skb(3), 6);
  read(500, skb(3), 6);
  arrive_by_cookie(600, skb(4), 6);
  close(700);
  close(710);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
  EXPECT_EQ(leg(4).cause, track::UnknownCause::socket_closed);
}

TEST_F(SocketsByCookie, a_socket_that_is_gone_is_not_found_by_its_address) {
  arrive_by_cookie(100, skb(1), 5);
  read(200, skb(1), 5);
  close(300);
  arrive_by_cookie(400, skb(2), 6);  // at the same address, which nothing has told
  arrive_by_cookie(410, skb(3), 7);
  read(500, skb(3), 7, kOther);
  close(600);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
}

// Nothing is known of a socket yet when it is read; then tcp_probe names both.
struct SocketsByBoth : SocketsByCookie {
  void arrive_by_both(Nanoseconds time, SkbAddr address, std::uint64_t cookie) {
    stack(time, address, 100);
    TcpProbe event = probe(address, 100);
    event.sock_cookie = cookie;
    tracker.on(at(time + 1), event);
  }
  // Bytes from before the capture, then some of a packet.
  void begin(std::uint64_t cookie) {
    read(200, skb(8), cookie);
    arrive_by_both(300, skb(1), cookie);
    read(400, skb(1), cookie);
  }
};

TEST_F(SocketsByBoth, a_socket_is_one_by_either) {
  begin(5);
  arrive_by_both(500, skb(2), 5);
  close(600);
  tracker.finish();
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
  EXPECT_EQ(leg(1).confidence, Confidence::exact);
  EXPECT_EQ(leg(2).cause, track::UnknownCause::socket_closed);
}

// The end of the first one was not seen.
TEST_F(SocketsByBoth, an_address_is_the_last_ones_who_had_it) {
  begin(5);
  arrive_by_both(500, skb(2), 5);
  arrive_by_both(600, skb(3), 6);
  read(700, skb(3), 6);
  arrive_by_both(800, skb(4), 6);
  close(900);
  tracker.finish();
  EXPECT_EQ(leg(2).outcome, Outcome::open);
  EXPECT_EQ(leg(3).outcome, Outcome::delivered);
  EXPECT_EQ(leg(3).confidence, Confidence::exact);
  EXPECT_EQ(leg(4).cause, track::UnknownCause::socket_closed);
}

// Whose end is not seen goes some day, and the address is another's by then.
TEST(Sockets, who_had_an_address_before_does_not_take_it_along) {
  constexpr SockAddr address{0xffff888200000800};
  track::Sockets sockets;
  track::Socket& first = sockets.make(5);
  ASSERT_EQ(sockets.find(address, 5), &first);
  track::Socket& second = sockets.make(6);
  ASSERT_EQ(sockets.find(address, 6), &second);
  sockets.forget(first);
  EXPECT_EQ(sockets.find(track::Sockets::key(address)), &second);
}

TEST(Sockets, who_has_another_address_now_is_not_found_by_the_one_before) {
  constexpr SockAddr before{0xffff888200000800}, now{0xffff888200001000};
  track::Sockets sockets;
  track::Socket& socket = sockets.make(5);
  ASSERT_EQ(sockets.find(before, 5), &socket);
  ASSERT_EQ(sockets.find(now, 5), &socket);
  EXPECT_EQ(sockets.find(track::Sockets::key(before)), nullptr);
}

// Nor is one that is not known yet found by it as the other.
TEST(Sockets, an_address_is_nobodys_between_two) {
  constexpr SockAddr address{0xffff888200000800};
  track::Sockets sockets;
  track::Socket& first = sockets.make(5);
  ASSERT_EQ(sockets.find(address, 5), &first);
  EXPECT_EQ(sockets.key_of(address, 6), 6U);
  EXPECT_EQ(sockets.find(track::Sockets::key(address)), nullptr);
}

// From 6.3 to 6.11 the calls tell the address, and so does sk_data_ready, right behind tcp_probe.
struct SocketsByCalls : SocketsByCookie {
  void look(Nanoseconds time) {
    enter(time);
    recv_length(time + 1, -EAGAIN);
    exit(time + 2, -EAGAIN);
  }
  void arrive_and_announce(Nanoseconds time, SkbAddr address) {
    arrive_by_cookie(time, address, 5);
    tracker.on(at(time + 2), ready(kTcp));
  }
  // What was copied in the queue no event names (tcp_collapse()).
  void read_collapsed(Nanoseconds time, std::int32_t len) {
    DeliveryScript::read(time, skb(9), len);
  }
};

TEST_F(SocketsByCalls, are_one_by_what_announces_them) {
  look(50);
  for (const std::uint64_t i : {1, 2, 3}) arrive_and_announce(100 * i, skb(i));
  DeliveryScript::read(400, skb(1), 100);
  read_collapsed(500, 200);
  tracker.finish();
  for (const std::uint64_t i : {2, 3}) EXPECT_EQ(time(leg(i), Stage::copy), 510U);
}

TEST_F(SocketsByCalls, are_one_by_what_copies_of_them) {
  look(50);
  for (const std::uint64_t i : {1, 2, 3}) arrive_by_cookie(100 * i, skb(i), 5);
  read(400, skb(1), 5);
  read_collapsed(500, 200);
  tracker.finish();
  EXPECT_EQ(time(leg(1), Stage::copy), 401U);
  for (const std::uint64_t i : {2, 3}) EXPECT_EQ(time(leg(i), Stage::copy), 510U);
}

// The address of what was collapsed is that of another connection's packet.
TEST_F(SocketsByCalls, are_told_by_the_call_whoever_has_the_address_of_its_bytes) {
  arrive_and_announce(100, skb(9));
  arrive_and_announce(200, skb(1));
  arrive_by_cookie(300, skb(1), 6);
  DeliveryScript::read(400, skb(9), 100);
  DeliveryScript::read(500, skb(1), 100);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::copy), 510U);
  EXPECT_EQ(leg(3).outcome, Outcome::open);
}

// What is announced without a probe of its own, such as a listener, is another socket.
TEST_F(SocketsByCalls, keep_the_address_that_they_were_told_by_first) {
  arrive_and_announce(100, skb(1));
  arrive_by_cookie(200, skb(2), 5);
  SkDataReady listener = ready(kTcp);
  listener.skaddr = kOther;
  tracker.on(at(203), listener);
  DeliveryScript::read(400, skb(1), 100);
  read_collapsed(500, 100);
  tracker.finish();
  EXPECT_EQ(time(leg(2), Stage::copy), 510U);
}

// Its segment was received with those of others, and has no tcp_probe.
TEST_F(SocketsByCalls, are_not_taken_for_a_listener_that_a_new_connection_makes_ready) {
  arrive_by_cookie(100, skb(1), 5);
  InetSockSetState event;
  event.skaddr = SockAddr{0xffff888200001000};
  event.protocol = kTcp;
  event.oldstate = 3;  // TCP_SYN_RECV
  event.newstate = 1;  // TCP_ESTABLISHED
  tracker.on(at(102), event);
  SkDataReady listener = ready(kTcp);
  listener.skaddr = kOther;
  tracker.on(at(103), listener);
  DeliveryScript::read(400, skb(1), 100);
  tracker.finish();
  EXPECT_FALSE(leg(1).stages.has(Stage::ready));
  EXPECT_EQ(leg(1).outcome, Outcome::delivered);
}

// Of two connections at once. skb(1) is coalesced with skb(9) of the first; then its address is
// that of an skb of the second one, with which skb(4) is coalesced.
struct CoalescedByCookie : SocketsByCookie {
  CoalescedByCookie() {
    arrive_by_cookie(100, skb(9), 5);
    arrive_by_cookie(110, skb(1), 5);
    arrive_by_cookie(120, skb(3), 5);
    arrive_by_cookie(130, skb(1), 6);
    arrive_by_cookie(140, skb(4), 6);
  }
};

TEST_F(CoalescedByCookie, a_copy_is_of_the_socket_that_is_told_behind_it) {
  read(200, skb(1), 6, kOther);
  read(300, skb(9), 5, kSocket, 200);
  read(400, skb(1), 6, kOther);
  tracker.finish();
  EXPECT_EQ(time(leg(5), Stage::copy), 401U);
  EXPECT_EQ(leg(5).confidence, Confidence::exact);
  EXPECT_EQ(leg(3).outcome, Outcome::open);
}

// Nor does the address tell whose it is: the kernel has copied what lay in the queue to another skb
// (tcp_collapse(), net/ipv4/tcp_input.c).
TEST_F(CoalescedByCookie, a_copy_is_of_the_socket_that_is_told_whoever_had_its_address) {
  read(200, skb(1), 6, kOther);
  read(300, skb(1), 5, kSocket, 300);
  arrive_by_cookie(350, skb(10), 5);
  read(400, skb(10), 5);  // tells where the queue is
  tracker.finish();
  for (const std::uint64_t id : {1U, 2U, 3U}) EXPECT_EQ(time(leg(id), Stage::copy), 301U) << id;
  EXPECT_EQ(leg(5).outcome, Outcome::open);
}

TEST_F(CoalescedByCookie, a_copy_is_of_the_socket_whose_skb_was_named_last_where_none_is_told) {
  read_unnamed(200, skb(1), 100);
  read_unnamed(300, skb(9), 200);
  read_unnamed(400, skb(1), 100);
  tracker.finish();
  EXPECT_EQ(time(leg(5), Stage::copy), 401U);
  EXPECT_EQ(leg(3).outcome, Outcome::open);
}

// `record --probes` tells the address before each tcp_probe; a probe may be missed.
struct ProbedSockets : SocketsByCookie {
  void arrive_missed(Nanoseconds time, SkbAddr address, std::uint64_t cookie) {
    stack(time, address, 100);
    TcpProbe event = probe(address, 100);
    event.skbaddr.reset();
    event.skaddr.reset();
    event.sock_cookie = cookie;
    tracker.on(at(time + 1), event);
  }
  void arrive_probed(Nanoseconds time, SkbAddr address, std::uint64_t cookie,
                     SockAddr sk = kSocket) {
    tracker.on(at(time), ProbeTcpRcvEstablished{sk, address});
    arrive_missed(time, address, cookie);
  }
};

TEST_F(ProbedSockets, what_came_with_a_missed_probe_ends_with_the_socket) {
  arrive_probed(100, skb(1), 5);
  arrive_missed(200, skb(2), 5);
  close(300);
  tracker.finish();
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_EQ(leg(id).cause, track::UnknownCause::socket_closed) << id;
  }
}

TEST_F(ProbedSockets, with_the_first_probe_missed_all_are_of_one_socket) {
  arrive_missed(100, skb(1), 5);
  arrive_probed(200, skb(2), 5);
  tracker.on(at(202), ProbeSockDefReadable{kSocket});
  close(300);
  tracker.finish();
  for (const std::uint64_t id : {1, 2}) {
    EXPECT_EQ(leg(id).cause, track::UnknownCause::socket_closed) << id;
  }
  EXPECT_TRUE(leg(2).stages.has(Stage::ready));
}

// Between the same two ends, the first one's end was not seen.
TEST_F(ProbedSockets, a_missed_probe_is_not_the_socket_before) {
  arrive_probed(100, skb(1), 5, kOther);
  arrive_missed(200, skb(2), 6);
  close(300, kOther);
  tracker.finish();
  EXPECT_EQ(leg(1).cause, track::UnknownCause::socket_closed);
  EXPECT_EQ(leg(2).outcome, Outcome::open);
}

}  // namespace
}  // namespace skbtrail::test
