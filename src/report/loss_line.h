// The closing lines of a text: what the capture lost, and where it is damaged.
#pragma once

#include <string>
#include <string_view>

#include "base/text_writer.h"
#include "track/capture_facts.h"

namespace skbtrail::report {

// "nothing", "12 events in 3 gaps", "at least 12 events in 3 gaps, 1 of them of unknown size", "an
// unknown number of events in 1 gap".
std::string extent_of_loss(const track::CaptureFacts& facts);

// What it means that tracing was switched off.
constexpr std::string_view kTracingEnded =
    "tracing ended before the recording, by somebody else or by the kernel";

// "# lost: nothing", or "# LOST: 12 events in 3 gaps"; then a line when tracing was switched
// off, one for each buffer that was not read, one when CPUs were not, one when kprobes missed
// calls, one for each damage and each event whose format makes no sense, and one when records could
// not be decoded.
void write_loss_line(const track::CaptureFacts& facts, TextWriter& out);

// The same on standard error for outputs that are a line per packet or switch and nothing else:
// behind the last line, and only when there is something to say.
void tell_what_lacks(const track::CaptureFacts& facts);

// "buffer "top" holds events too: --buffer top".
std::string not_read_buffer(std::string_view name);

// "CPU 1 recorded nothing: idle, offline or not traced".
std::string silent_cpus(const track::CaptureFacts& facts);

// "CPUs 1-3: of packets and tasks that were there too this is a part".
std::string not_read_cpus(const track::CaptureFacts& facts);

// "tcp_rcv_established() 12, skb_gro_receive() 3".
std::string missed_calls(const track::CaptureFacts& facts);

}  // namespace skbtrail::report
