// What a system call is about, by its name.
//
// read() and write() work on any descriptor, and no event tells of which kind it is. They count as
// network calls when something of a socket happened inside (SocketEvidence), else as file calls. A
// read() of an empty socket that returns at once leaves no trace on kernels before 6.3, which have
// no sock_recv_length: it counts as a file call there. AF_UNIX sockets are sockets.
#pragma once

#include <cstdint>
#include <string_view>

namespace skbtrail::track {

enum class CallClass : std::uint8_t {
  network_send,
  network_receive,
  wait,  // for descriptors, other threads, children, time
  file,
  other,
  by_descriptor_read,   // network_receive or file: never what a call is counted as in the end
  by_descriptor_write,  // network_send or file
};
inline constexpr std::size_t kCallClasses = 5;  // that calls are counted as

enum class CallResult : std::uint8_t {
  status,  // nothing that is added up
  bytes,
  ready,  // descriptors that are ready; 0 after the timeout
};

struct CallTraits {
  std::string_view name;
  CallClass call_class = CallClass::other;
  CallResult result = CallResult::status;
  std::string_view reason;  // why this class
};

// `name` as strace or as the kernel's event has it; a call that the table lacks is `other`.
const CallTraits& call_traits(std::string_view name);

// "network send"; for people and for machines.
std::string_view name(CallClass call_class);

inline bool by_descriptor(CallClass call_class) {
  return call_class == CallClass::by_descriptor_read ||
         call_class == CallClass::by_descriptor_write;
}
// What the call counts as, when it is known whether it was about a socket.
inline CallClass settled(CallClass call_class, bool socket) {
  if (call_class == CallClass::by_descriptor_read) {
    return socket ? CallClass::network_receive : CallClass::file;
  }
  if (call_class == CallClass::by_descriptor_write) {
    return socket ? CallClass::network_send : CallClass::file;
  }
  return call_class;
}

}  // namespace skbtrail::track
