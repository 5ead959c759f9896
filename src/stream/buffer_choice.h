// Which buffers of a capture are read together, as one stream of events.
//
// A capture may hold the top buffer and instances. Where each recorded other events (a graph of
// function calls beside events, scheduling beside packets), one stream of all is what people want.
// Where two recorded the same events, both together would count every packet twice, and packets
// would be matched with their own copies: such buffers are never mixed. So:
//
// - A look at some pages of each buffer tells which event types it holds. The first buffer with
// data,
//   the top one before instances, is read; another one is read with it when it holds none of the
//   types of those before it and has the same clock.
// - A look at some pages is no proof. So each type is taken from one buffer only: what a buffer
// holds of
//   a type that was seen in another one, or in a joined buffer of a type that was not seen in it,
//   is skipped and counted.
// - Buffers that the user names are read, or refused with the reason.
#pragma once

#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "tracedat/reader.h"

namespace skbtrail::stream {

// The name on the command line: "top", or the instance's.
std::string shown_name(const tracedat::Buffer& buffer);

struct ChosenBuffer {
  const tracedat::Buffer* buffer = nullptr;
  std::vector<bool> skip;  // by event id; empty: none
};

struct BufferChoice {
  std::vector<ChosenBuffer> read;                 // at least one
  std::vector<const tracedat::Buffer*> not_read;  // those with data
};

// `wanted` by name; none: all that can be read together.
Result<BufferChoice> choose_buffers(const tracedat::Reader& file,
                                    const std::vector<std::string>& wanted);

}  // namespace skbtrail::stream
