// A queue that keeps its memory.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace skbtrail::track {

template <class T>
class Fifo {
 public:
  bool empty() const { return front_ == items_.size(); }
  std::size_t size() const { return items_.size() - front_; }
  T& front() { return items_[front_]; }
  const T& front() const { return items_[front_]; }
  T& at(std::size_t index) { return items_[front_ + index]; }
  const T& at(std::size_t index) const { return items_[front_ + index]; }
  void push(T item) {
    if (front_ == items_.size()) {
      clear();
    } else if (front_ > 64 && front_ * 2 > items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(front_));
      front_ = 0;
    }
    items_.push_back(std::move(item));
  }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(front_); }
  auto end() { return items_.end(); }
  void push_front(T item) {
    if (front_ > 0) {
      items_[--front_] = std::move(item);
    } else {
      items_.insert(items_.begin(), std::move(item));
    }
  }
  void pop() { ++front_; }
  void erase(std::size_t index) {
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(front_ + index));
  }
  void clear() {
    items_.clear();
    front_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t front_ = 0;
};

}  // namespace skbtrail::track
