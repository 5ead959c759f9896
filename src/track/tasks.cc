#include "track/tasks.h"

namespace skbtrail::track {

Task& Tasks::make(Pid pid) {
  if (free_.empty()) {
    storage_.emplace_back();
    free_.push_back(&storage_.back());
  }
  Task& task = *free_.back();
  free_.pop_back();
  task = Task();
  task.pid = pid;
  return task;
}

void Tasks::forget(Pid pid) {
  Task*& slot = places_[pid];
  if (slot == nullptr) return;
  if (recent_ == slot) recent_ = nullptr;
  slot->pid = kNobody;
  free_.push_back(slot);
  slot = nullptr;
}

}  // namespace skbtrail::track
