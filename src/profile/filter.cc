#include "profile/filter.h"

#include <algorithm>
#include <array>

namespace skbtrail {
namespace {

constexpr std::string_view kDevPlaceholder = "$dev";
constexpr std::string_view kPidPlaceholder = "$pid";

using Words = std::vector<std::string>;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string replaced(std::string text, std::string_view from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

std::string any_of(const Words& alternatives) {
  if (alternatives.size() == 1) return alternatives[0];
  std::string text;
  for (const std::string& one : alternatives) text += (text.empty() ? "" : " || ") + one;
  return text;
}

std::string both(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a + b;
  return "(" + a + ") && (" + b + ")";
}

Words quoted(const std::vector<std::string>& devices) {
  Words words;
  for (const std::string& device : devices) words.push_back("\"" + device + "\"");
  return words;
}

Words as_text(const std::vector<Pid>& pids) {
  Words words;
  for (const Pid pid : pids) words.push_back(std::to_string(pid));
  return words;
}

// The whole filter once per value. Without values nothing is left to compare with.
std::string expand(const std::string& filter, std::string_view placeholder, const Words& values) {
  Words alternatives;
  for (const std::string& value : values) {
    alternatives.push_back("(" + replaced(filter, placeholder, value) + ")");
  }
  return any_of(alternatives);
}

// Where an event names a network device. irq_handler_entry also has a `name`, but that is the
// driver's name for its interrupt ("virtio0-input.0"), and most hard irqs belong to no device at
// all.
Words device_fields(std::string_view system) {
  if (system == "net") return {"name"};
  if (system == "napi") return {"dev_name"};
  return {};
}

// Which task an event is about. Syscall events are about the task they happen in; sched events
// happen in the waker and are about the woken.
Words pid_fields(std::string_view system) {
  if (system == "syscalls" || system == "raw_syscalls") return {"common_pid"};
  if (system == "sched") return {"prev_pid", "next_pid", "pid", "parent_pid", "child_pid"};
  return {};
}

// Of each run of consecutive pids, as the threads of a process mostly have, its first and last: the
// kernel takes one page of filter.
Words pid_terms(const std::string& field, std::vector<Pid> pids) {
  std::sort(pids.begin(), pids.end());
  Words terms;
  for (std::size_t i = 0; i < pids.size();) {
    std::size_t last = i;
    while (last + 1 < pids.size() && pids[last + 1] - pids[last] <= 1) ++last;
    const std::string first = std::to_string(pids[i]);
    if (pids[last] - pids[i] < 2) {
      terms.push_back(field + " == " + first);
      if (pids[last] > pids[i]) terms.push_back(field + " == " + std::to_string(pids[last]));
    } else {
      terms.push_back("(" + field + " >= " + first + " && " + field +
                      " <= " + std::to_string(pids[last]) + ")");
    }
    i = last + 1;
  }
  return terms;
}

// "a == 1 || a == 2" over the candidates that this event has; `terms(field)` are those of one.
template <class Terms>
std::string comparison(const Words& candidates, std::span<const std::string> fields, Terms terms) {
  Words alternatives;
  for (const std::string& candidate : candidates) {
    if (std::find(fields.begin(), fields.end(), candidate) == fields.end()) continue;
    for (std::string& term : terms(candidate)) alternatives.push_back(std::move(term));
  }
  return any_of(alternatives);
}

Words device_terms(const std::string& field, const Words& devices) {
  Words terms;
  for (const std::string& device : devices) terms.push_back(field + " == " + device);
  return terms;
}

}  // namespace

bool is_device_name(std::string_view name) {
  constexpr std::size_t kLongest = 15;  // IFNAMSIZ - 1
  return !name.empty() && name.size() <= kLongest &&
         name.find_first_of("\"\\/ \t\n") == std::string_view::npos;
}

std::string compose_filter(std::string_view system, std::span<const std::string> fields,
                           std::string_view filter, const Selection& selection) {
  const Words devices = quoted(selection.devices);
  const Words pids = as_text(selection.pids);
  const bool own_dev = contains(filter, kDevPlaceholder);
  const bool own_pid = contains(filter, kPidPlaceholder);
  std::string text(filter);
  if (own_dev) text = expand(text, kDevPlaceholder, devices);
  if (own_pid) text = expand(text, kPidPlaceholder, pids);
  if (!own_dev) {
    text = both(text, comparison(device_fields(system), fields, [&](const std::string& field) {
                  return device_terms(field, devices);
                }));
  }
  if (!own_pid) {
    text = both(text, comparison(pid_fields(system), fields, [&](const std::string& field) {
                  return pid_terms(field, selection.pids);
                }));
  }
  return text;
}

std::string either_filter(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return "";
  if (a == b) return a;
  return "(" + a + ") || (" + b + ")";
}

}  // namespace skbtrail
