// A profile: which events answer one question. Text, one statement per line
// (man/skbtrail.profile.5):
//
//   name    net-drops                        # the file's name without .profile
//   about   Dropped packets, and why         # one line for `skbtrail list profiles`
//   include net-min                          # all events of another profile
//   event   skb:kfree_skb reason > 2         # SYSTEM:EVENT [kernel filter]
//   event   qdisc:*                          # wildcards as in fnmatch(3)
//
// "#" starts a comment at the start of a line or after a blank. No quoting, no variables but $dev
// and $pid in filters: a profile is data that a person reads before running it as root.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "skbtrail/result.h"

namespace skbtrail {

struct EventRule {
  std::string system;     // may hold wildcards
  std::string event;      // may hold wildcards
  std::string filter;     // a kernel filter, perhaps with $dev or $pid; empty = none
  bool required = false;  // asked for by name on the command line: missing is an error

  std::string name() const { return system + ":" + event; }
};

struct Profile {
  std::string name;
  std::string about;
  std::vector<std::string> includes;
  std::vector<EventRule> rules;
};

// `where` names the file in messages: "where:LINE: ...".
Result<Profile> parse_profile(std::string_view text, std::string_view where);

// "SYSTEM:EVENT" or "SYSTEM:EVENT:FILTER" of the command line.
Result<EventRule> parse_event_argument(std::string_view word);

}  // namespace skbtrail
