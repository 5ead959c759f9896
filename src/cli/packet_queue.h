// Packets on their way from the thread that tracks them to one that prints them: half of the time
// that a line takes is its text.
//
// A packet and its legs live until the tracker goes on, so they are copied. What their numbers
// stand for is looked up by the thread that prints: track::Devices and track::Flows allow it.
#pragma once

#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "base/batch_queue.h"
#include "base/helper_thread.h"
#include "track/packet.h"

namespace skbtrail::cli {

class PacketBatch {
 public:
  PacketBatch() = default;
  PacketBatch(const PacketBatch&) = delete;  // packets point to their own legs
  PacketBatch& operator=(const PacketBatch&) = delete;

  // To be called before it is filled, the first time too: until then it takes no memory.
  void clear() {
    if (legs_.empty()) legs_.resize(kLegs);
    packets_.clear();
    used_ = 0;
  }
  // One packet has room however many legs it has.
  bool has_room(const track::Packet& packet) const {
    return packets_.empty() || used_ + legs_of(packet) <= legs_.size();
  }
  void add(const track::Packet& packet) {
    if (packets_.empty() && legs_of(packet) > legs_.size()) legs_.resize(legs_of(packet));
    const track::Leg* first = &legs_[used_];
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) {
      track::Leg& copy = legs_[used_++];
      copy = *leg;
      copy.next = leg->next == nullptr ? nullptr : &copy + 1;
    }
    packets_.emplace_back(packet.id, packet.generation, first);
  }

  void pass_to(track::PacketSink& sink) const {
    for (const track::Packet& packet : packets_) sink.packet(packet);
  }

 private:
  static constexpr std::size_t kLegs = 128;

  static std::size_t legs_of(const track::Packet& packet) {
    std::size_t count = 0;
    for (const track::Leg* leg = packet.first; leg != nullptr; leg = leg->next) ++count;
    return count;
  }

  std::vector<track::Packet> packets_;
  std::vector<track::Leg> legs_;  // of all of them, one behind the other
  std::size_t used_ = 0;
};

class PacketQueue : public track::PacketSink {
 public:
  // `sink` must outlive this; it is told of all packets on another thread, or at once where none
  // can be had.
  explicit PacketQueue(track::PacketSink& sink) : sink_(sink), queue_(kBatches) {
    taking_ = start_helper([this] { take(); });
    if (taking_) batch_ = queue_.next_empty();
  }
  PacketQueue(const PacketQueue&) = delete;
  PacketQueue& operator=(const PacketQueue&) = delete;
  ~PacketQueue() override { queue_.end(); }  // and waits for the thread

  void packet(const track::Packet& packet) override {
    if (!taking_) return sink_.packet(packet);
    if (!batch_->has_room(packet)) {
      queue_.filled();
      batch_ = queue_.next_empty();
    }
    if (batch_ == nullptr) return finish();  // which throws
    batch_->add(packet);
  }

  // After the last packet: returns when the sink has had it, or throws what that threw.
  void finish() {
    if (!taking_) return;
    if (batch_ != nullptr) queue_.filled();
    queue_.end();
    std::exchange(taking_, std::nullopt)->get();
  }

 private:
  static constexpr std::size_t kBatches = 32;

  void take() {
    struct Leave {
      BatchQueue<PacketBatch>& queue;
      ~Leave() { queue.abandon(); }
    } leave{queue_};  // also when the sink throws: who tracks must not wait for ever
    while (const PacketBatch* batch = queue_.next_filled()) {
      batch->pass_to(sink_);
      queue_.emptied();
    }
  }

  track::PacketSink& sink_;
  BatchQueue<PacketBatch> queue_;
  PacketBatch* batch_ = nullptr;
  std::optional<std::future<void>> taking_;
};

}  // namespace skbtrail::cli
