// What the first dispatcher leaves of each batch: work that needs nothing but what it has put
// aside, and is done by whichever thread has time (stream/beside.h).
//
// It is put in places, by turns. One thread puts while another one may be at a place it put before;
// no place is put into again before it is done with.
#pragma once

#include <cstddef>

namespace skbtrail::stream {

class Behind {
 public:
  static constexpr std::size_t kMostPlaces = 32;

  virtual ~Behind() = default;
  // What is left from here on is to be put there. Before the first time, and behind end(), there is
  // no place: then it is to be done at once.
  virtual void begin(std::size_t place) = 0;
  virtual void end() = 0;
  // Does what was put there, in the order of begin().
  virtual void finish(std::size_t place) = 0;
};

}  // namespace skbtrail::stream
