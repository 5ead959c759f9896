#include "support/page_builder.h"

#include <stdexcept>

namespace skbtrail::test {
namespace {

constexpr std::uint32_t kPadding = 29;
constexpr std::uint32_t kTimeExtend = 30;
constexpr std::uint32_t kTimeStamp = 31;
constexpr unsigned kDeltaBits = 27;
constexpr std::uint32_t kDeltaMask = (1U << kDeltaBits) - 1;

std::string padded(std::string bytes) {
  bytes.resize((bytes.size() + 3) & ~std::size_t{3}, '\0');
  return bytes;
}

std::string word(std::uint32_t value) {
  std::string bytes;
  put(bytes, value);
  return bytes;
}

}  // namespace

std::string payload(std::uint16_t id, std::size_t size, char mark) {
  std::string bytes;
  put(bytes, id);
  bytes.resize(size, '\0');
  if (size > sizeof id) bytes.back() = mark;
  return bytes;
}

PageBuilder& PageBuilder::record(std::uint32_t type_len, std::uint32_t delta,
                                 std::string_view rest) {
  put(data_, type_len | delta << 5);
  data_ += rest;
  return *this;
}

PageBuilder& PageBuilder::data(std::uint32_t delta, const std::string& bytes) {
  const std::string whole = padded(bytes);
  if (whole.empty() || whole.size() > 112) throw std::logic_error("needs big_data()");
  return record(static_cast<std::uint32_t>(whole.size() / 4), delta, whole);
}

PageBuilder& PageBuilder::big_data(std::uint32_t delta, const std::string& bytes) {
  return record(0, delta, word(static_cast<std::uint32_t>(bytes.size() + 4)) + padded(bytes));
}

PageBuilder& PageBuilder::discarded(std::uint32_t delta, std::uint32_t size) {
  return record(kPadding, delta, word(size) + std::string(size - 4, '\x5a'));
}

PageBuilder& PageBuilder::rest_is_empty() {
  return record(kPadding, 0);
}

PageBuilder& PageBuilder::time_extend(Nanoseconds delta) {
  return record(kTimeExtend, delta & kDeltaMask,
                word(static_cast<std::uint32_t>(delta >> kDeltaBits)));
}

PageBuilder& PageBuilder::time_stamp(Nanoseconds time) {
  return record(kTimeStamp, time & kDeltaMask,
                word(static_cast<std::uint32_t>(time >> kDeltaBits)));
}

PageBuilder& PageBuilder::raw(std::string_view bytes) {
  data_ += bytes;
  return *this;
}

PageBuilder& PageBuilder::missed() {
  flags_ = 0xffffffff80000000;
  return *this;
}

PageBuilder& PageBuilder::missed(std::uint64_t count) {
  flags_ = 0xffffffffc0000000;
  stored_.clear();
  put(stored_, count);
  return *this;
}

PageBuilder& PageBuilder::commit(std::uint64_t word) {
  commit_ = word;
  commit_set_ = true;
  return *this;
}

std::string PageBuilder::build() const {
  std::string page;
  put(page, time_);
  put(page, commit_set_ ? commit_ : flags_ | data_.size());
  page += data_ + stored_;
  if (page.size() > size_) throw std::logic_error("the page is too small");
  page.resize(size_, '\0');
  return page;
}

std::vector<std::uint8_t> as_bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

}  // namespace skbtrail::test
