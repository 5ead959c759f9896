// A queue that keeps its memory.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace skbtrail::track {

template <class T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T& front() { return items_[front_]; }
  const T& front() const { return items_[front_]; }
  T& at(std::size_t index) { return items_[front_ + index]; }
  const T& at(std::size_t index) const { return items_[front_ + index]; }
  void push(T item) {
    if (empty()) {
      clear();
    } else if (front_ > 64 && front_ > size_) {
      items_.erase(items_.begin(), begin());
      front_ = 0;
    }
    items_.push_back(std::move(item));
    ++size_;
  }
  auto begin() { return items_.begin() + static_cast<std::ptrdiff_t>(front_); }
  auto end() { return items_.end(); }
  void push_front(T item) {
    if (front_ > 0) {
      items_[--front_] = std::move(item);
    } else {
      items_.insert(items_.begin(), std::move(item));
    }
    ++size_;
  }
  void pop() {
    ++front_;
    --size_;
  }
  void erase(std::size_t index) {
    items_.erase(items_.begin() + static_cast<std::ptrdiff_t>(front_ + index));
    --size_;
  }
  void clear() {
    items_.clear();
    front_ = size_ = 0;
  }

 private:
  std::vector<T> items_;
  std::size_t front_ = 0;
  std::size_t size_ = 0;  // the vector would divide for it, and it is asked for with every packet
};

}  // namespace skbtrail::track
