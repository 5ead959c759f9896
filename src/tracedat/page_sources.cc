#include "tracedat/page_sources.h"

#include <algorithm>

#include "ring/page_search.h"

namespace skbtrail::tracedat {

FilePages::FilePages(const MappedFile& file, std::span<const std::uint8_t> pages,
                     std::uint32_t page_size, std::shared_ptr<ring::Blocks> blocks,
                     Nanoseconds from, ring::TimeScale scale)
    : file_(file),
      pages_(pages),
      base_(static_cast<std::uint64_t>(pages.data() - file.bytes().data())),
      page_size_(page_size),
      blocks_(std::move(blocks)),
      from_(from),
      scale_(scale) {}

// From the page in which data begins, up to the end of the one in which it ends.
bool FilePages::next_stretch() {
  if (position_ >= pages_.size()) return false;
  const auto data = file_.next_data(base_ + position_);
  if (!data || data->begin >= base_ + pages_.size()) {
    if (file_.length() < base_ + pages_.size()) ++unreadable_;  // no hole: it was cut
    position_ = stretch_end_ = pages_.size();
    return false;
  }
  const std::uint64_t begin = (std::max(data->begin, base_) - base_) / page_size_ * page_size_;
  const std::uint64_t end = (data->end - base_ + page_size_ - 1) / page_size_ * page_size_;
  position_ = std::max(position_, begin);
  stretch_end_ = std::min<std::uint64_t>(end, pages_.size());
  if (from_ == 0) return true;
  const std::uint64_t before = ring::pages_before(
      pages_.subspan(position_, stretch_end_ - position_), page_size_, from_, scale_);
  position_ += before * page_size_;
  left_out_ = before > 0;
  return true;
}

ring::PageRun FilePages::next(bool keep) {
  if (keep) kept_ = std::move(current_);
  current_.reset();
  unreadable_ += std::exchange(missing_behind_, 0);
  while (position_ < stretch_end_ || next_stretch()) {
    const std::uint64_t begin = position_;
    const std::uint64_t room = blocks_->size() / page_size_ * page_size_;
    const std::uint64_t wanted = std::min(stretch_end_ - begin, room);
    current_ = blocks_->take();
    const std::size_t got = file_.read({current_.get(), wanted}, base_ + begin);
    position_ += wanted;
    const bool left_out = std::exchange(left_out_, got < wanted);
    if (got < wanted) ++(got > 0 ? missing_behind_ : unreadable_);
    if (got > 0) return {{current_.get(), got}, begin / page_size_, left_out, current_};
    current_.reset();
  }
  return {};
}

CompressedPages::CompressedPages(std::span<const std::uint8_t> blocks, Compression compression,
                                 std::uint32_t page_size)
    : reader_(blocks),
      compression_(compression),
      page_size_(page_size),
      blocks_left_(reader_.number<std::uint32_t>()) {}

ring::PageRun CompressedPages::next(bool keep) {
  if (keep) std::swap(current_, kept_);
  while (blocks_left_ > 0 && reader_.ok()) {
    --blocks_left_;
    const Block block = read_block(reader_);
    if (!reader_.ok()) break;
    if (!plausible(block, compression_, max_block(page_size_)) ||
        !decompress(block, compression_, current_)) {
      ++unreadable_;
      continue;
    }
    if (current_.empty()) continue;
    ring::PageRun run{current_, next_page_, false, nullptr};
    next_page_ += (current_.size() + page_size_ - 1) / page_size_;
    return run;
  }
  // A chain that ends too early, or bytes behind its end: its count or a size is damaged.
  if (!ended_ && (!reader_.ok() || reader_.left() > 0)) ++unreadable_;
  ended_ = true;
  return {};
}

}  // namespace skbtrail::tracedat
