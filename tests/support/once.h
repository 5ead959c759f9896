// What the tests of one capture have in common: made for the first of them, shared by those that
// follow in the same process (tests/CMakeLists.txt has each capture's tests run in one).
#pragma once

#include <filesystem>
#include <memory>

namespace skbtrail::test {

// A Made(capture), valid until another capture's is asked for.
template <class Made>
const Made& once(const std::filesystem::path& capture) {
  static std::filesystem::path its_capture;
  static std::unique_ptr<const Made> made;
  if (!made || its_capture != capture) {
    made.reset();
    made = std::make_unique<const Made>(capture);
    its_capture = capture;
  }
  return *made;
}

}  // namespace skbtrail::test
