// The bytes of a stream that lie in a socket, in the order in which they will be read.
//
// A copy names the skb that it reads from, and TCP coalesces segments (tcp_try_coalesce(),
// net/ipv4/tcp_input.c): of a group only the first is ever named. Which packet a byte came in is
// known from the order. No event has sequence numbers, and segments do not always come in the order
// of the stream. What is known of it (net/ipv4/tcp_input.c, 5.4 to 6.18):
// - Where sk_data_ready is recorded, it follows every segment that came in its place, and none that
//   came too early: tcp_data_queue_ofo() puts those aside. One in its place goes before them, and
//   takes along those that follow it (tcp_ofo_queue(), before tcp_data_ready()): all, until
//   something else is known.
// - What is sent for a segment at once tells whether others still wait: where it has come in its
//   place and some do, it is acknowledged with their ranges, and without where none does any more
//   (__tcp_ack_snd_check(), tcp_data_queue()). One that comes too early is acknowledged with
//   ranges, or not at once. How long that is tells which.
// - What a copy names is first. What came in its place before that has been read.
// - An address may be another skb's: tcp_collapse() copies what lies in the socket into new ones,
//   which may have those of what had been coalesced. But how much has been read is known: a packet
//   that came in its place is next when that is as much as came before it, or less by what came too
//   early. What cannot be next was not named: the copy is of what is first. Where that has been
//   seen, or a copy names a skb that never came, what came too early explains nothing, either. Two
//   names in a row that are away from it by the same amount are believed: then that amount was not
//   known to be read. So is each where bytes leave without an event.
// - Segments are coalesced whole: a skb that is named for the first time has all its bytes, unless
//   some were taken without a copy. Where some had been taken for another's, those were of one that
//   had been coalesced.
// - What has been received and not copied is still there: of what came before a segment in its
//   place, as much has been read as is missing.
// With SO_RCVLOWAT not all that came in their place are announced (tcp_data_ready()). Then the
// first copy of one that was taken for too early comes before what had overtaken it. And what is
// sent for it at once has no ranges. Without SACK no answer has: until a copy tells, it is a guess.
// A socket may hold bytes from before the capture. Until a copy names a packet, what copies take
// may be those: who has not waited for that (track/unplaced_reads.h) guesses. All that is guessed
// is marked as inferred.
//
// Hot paths call what is rare, and do not contain it: [[gnu::noinline]].
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "track/fifo.h"
#include "track/leg_table.h"

namespace skbtrail::track {

struct QueuedBytes {
  // `early`: what it waited for has come; `waits`: it has not.
  enum class Place : std::uint8_t { not_known, in_order, early, waits };

  LegRef leg;               // null when it arrived before the capture, or is dead
  std::uint32_t bytes = 0;  // not yet read
  std::uint32_t arrived = 0;
  std::uint64_t since = 0;    // how many bytes its queue had received before
  std::uint64_t follows = 0;  // what came in its place before so many is before it in the stream
  std::uint32_t range = 0;    // of those that wait for the same one
  Place place = Place::not_known;
  bool named = false;  // by a copy, or read in part without one

  bool untouched() const { return bytes == arrived && !named; }
};

class ByteQueue {
 public:
  // Whether all segments in their place are announced: decided by the first copy of one that seemed
  // to be early. `perhaps_some`: by an answer without ranges, which tells it where SACK is in use.
  enum class Announced : std::uint8_t { not_known, all, perhaps_some, some };

  bool empty() const { return items_.empty(); }
  std::size_t size() const { return items_.size(); }
  const QueuedBytes& at(std::size_t index) const { return items_.at(index); }
  // No bytes from before the first of these are left; else what copies take may have been some.
  bool aligned() const { return aligned_; }
  // How many came before that packet; nothing when it is not here.
  std::optional<std::size_t> before(const LiveLeg& leg) const;
  // A copy from that packet's address is of another skb: the packet is not next.
  bool cannot_be_named(const LiveLeg& leg) const;
  // Some of its bytes are read without an event that tells how many: by TCP_ZEROCOPY_RECEIVE, or by
  // the kernel (tcp_read_sock()).
  void set_read_unseen() {
    read_unseen_ = true;
    anothers_ = SkbAddr{};
  }
  // While it is not aligned: so many have been read, and nothing of the next one, which a copy
  // names.
  void begin_behind(std::size_t number);
  // What is in it is read from the first byte on.
  void begin_here() { aligned_ = true; }
  // Bytes are read in another order than they came in.
  bool disordered() const { return order_.disordered; }
  // They may only seem to be: not all that came in their place may have been announced.
  bool order_is_doubtful() const {
    const bool is_known = order_.announced == Announced::all || order_.announced == Announced::some;
    return order_.disordered && !is_known;
  }
  // Of what is here, before that packet, which is here, too: in the order in which they will be
  // read, and in that in which they came in.
  std::uint64_t bytes_before(const LiveLeg& leg) const;
  std::uint64_t bytes_arrived_before(const LiveLeg& leg) const;
  // Whether a packet ends behind the first so many.
  bool has_end_at(std::uint64_t bytes) const;
  // Of all that is here, and from that packet on: nothing when that is none of the last.
  std::uint64_t bytes() const { return unread_; }
  std::optional<std::uint64_t> bytes_from(const LiveLeg& leg) const;
  // As they came in. `announced`: what that tells of those that seemed to be early.
  [[gnu::noinline]] void restore_arrival(Announced announced);

  // What is known of the socket, whatever lies in it.
  struct Order {
    Announced announced = Announced::not_known;
    bool disordered = false;
  };
  const Order& order() const { return order_; }
  void set_order(const Order& order) { order_ = order; }

  void push(LiveLeg* leg, std::uint32_t bytes);
  // What opened the connection came before all that was pushed.
  [[gnu::noinline]] void push_first(LiveLeg& leg, std::uint32_t bytes);
  // From another queue, whose order says nothing of this one's.
  void push_unordered(const LegRef& leg, std::uint32_t bytes);
  void pop();
  // It was dropped.
  [[gnu::noinline]] void erase(const LiveLeg& leg);
  // One that waits was thrown away to make room for those that came last, so many: the last in the
  // stream, as far as its order is known, unless an address that may have been another's since
  // names it. Returns it; null when none is known.
  [[gnu::noinline]] LiveLeg* prune(const LiveLeg* named, std::size_t newest);
  // Something was lost: as at the beginning, but for what is known of the socket.
  [[gnu::noinline]] void clear();
  [[gnu::noinline]] void begin_anew();  // for another socket

  // sk_data_ready of the segment that came last, into which so many others had been coalesced: of
  // that packet, or of one that nobody knows (null).
  void announce(const LiveLeg* leg, std::size_t coalesced);

  // A segment that was not announced was acknowledged at once by a packet of that length, ...
  void answered_early(std::uint32_t len);
  void answered_early_without_ranges(std::uint32_t len);
  // ... the one that was announced last, behind that.
  void answered(std::uint32_t len);
  // Where nothing is announced: that others wait tells no order, but that it is none.
  void answered_unannounced(std::uint32_t len);
  // Answers tell something: segments have come too early.
  bool asks_for_answers() const { return bare_answer_ != 0; }

  // A copy of the skb at that address: of the packet `leg`, unless that is not known or has been
  // read. Returns how many bytes were not there, and appends to `read` those whose last byte has
  // been read by now.
  std::uint64_t copy(SkbAddr skb, LiveLeg* leg, std::uint64_t bytes, std::vector<LiveLeg*>& read);

  // The same of bytes that no copy event tells of.
  std::uint64_t take_uncopied(std::uint64_t bytes, std::vector<LiveLeg*>& read);

 private:
  using Place = QueuedBytes::Place;
  // Taken as coalesced with another, while the order was a guess.
  struct Taken {
    SkbAddr skb{};
    QueuedBytes bytes;
  };

  // How far behind the front packets are looked for.
  static constexpr std::size_t kMaxDisorder = 1024;
  static constexpr std::size_t kMaxTaken = 64;

  std::size_t near() const { return std::min(items_.size(), kMaxDisorder); }
  // Of the first `number`; size() when it is none of them.
  std::size_t find(const LiveLeg& leg, std::size_t number) const;
  // How many bytes have been read: the first of a packet that came in its place, and has none
  // before it that are read later, has that number as its `since`.
  std::uint64_t position() const { return received_ - unread_; }
  bool may_be_next(const QueuedBytes& queued) const;
  bool is_next(const QueuedBytes& queued) const;
  void sees_head(SkbAddr skb, bool is_packets);
  [[gnu::noinline]] bool is_anothers(SkbAddr skb, const QueuedBytes& named);
  [[gnu::noinline]] void begins_at(const LiveLeg& leg, std::vector<LiveLeg*>& read);
  void settle();
  [[gnu::noinline]] void overtakes(std::size_t early, std::size_t group);
  void still_wait(std::uint32_t gone);
  void wait_again();
  std::uint64_t take(std::uint64_t bytes, bool by_copy, std::vector<LiveLeg*>& read);
  void name(LiveLeg& leg, std::vector<LiveLeg*>& read);
  [[gnu::noinline]] void bring_to_front(LiveLeg& leg, std::vector<LiveLeg*>& read);
  bool comes_before_its_overtaker(std::size_t at) const;
  bool overtaker_is_behind_front() const;
  [[gnu::noinline]] void sort_by_arrival();
  template <class Which>
  void behind_front_have_been_read(std::vector<LiveLeg*>& read, Which which);
  [[gnu::noinline]] void front_is_first(std::vector<LiveLeg*>& read);
  std::uint64_t read_behind_front() const;
  bool nothing_is_early() const;
  [[gnu::noinline]] void has_been_read(std::size_t at, std::vector<LiveLeg*>& read);
  void withdraw(std::size_t at);
  void remember_gone(SkbAddr skb);
  [[gnu::noinline]] void remember_taken(const LiveLeg& leg, const QueuedBytes& bytes);
  [[gnu::noinline]] void return_taken(SkbAddr skb, std::vector<LiveLeg*>& read);

  Fifo<QueuedBytes> items_;
  std::uint64_t received_ = 0;
  std::uint64_t unread_ = 0;  // of those
  Order order_;
  bool unsettled_ = false;  // the order of items_ is a guess
  bool aligned_ = false;
  bool read_unseen_ = false;
  bool announces_ = false;   // sk_data_ready has told of some: 6.3
  bool collapsed_ = false;   // addresses have been another's
  SkbAddr head_{};           // the last copy named it
  SkbAddr anothers_{};       // the last copy named it, which was another's
  std::uint64_t early_ = 0;  // at most so many bytes came before others that are read first
  std::optional<std::uint64_t> away_;  // by how much the last name was not next
  std::uint64_t overtaken_ = 0;        // `follows` of those that the last announced one overtook
  std::uint32_t bare_answer_ = 0;      // the length of one without ranges; 0: not known
  std::uint32_t ranges_ = 0;           // in the last answer
  std::uint32_t last_range_ = 0;
  std::vector<Taken> taken_;
  std::vector<SkbAddr> gone_;  // taken for read by a guess, last
  std::size_t next_gone_ = 0;
};

}  // namespace skbtrail::track
