#include "tracedat/page_sources.h"

#include <algorithm>

#include "ring/page_search.h"

namespace skbtrail::tracedat {

FilePages::FilePages(const MappedFile& file, std::span<const std::uint8_t> pages,
                     std::uint32_t page_size, Nanoseconds from, ring::TimeScale scale,
                     std::uint64_t window)
    : file_(file),
      pages_(pages),
      base_(static_cast<std::uint64_t>(pages.data() - file.bytes().data())),
      page_size_(page_size),
      window_(std::max<std::uint64_t>(window / page_size * page_size, page_size)),
      from_(from),
      scale_(scale) {}

// All pages, whatever the stretch: a part of a mapping that is to be read in another way is one of
// its own, and there are only so many.
void FilePages::expect(MappedFile::Access access) const {
  file_.expect(access, base_, pages_.size());
}

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
  expect(MappedFile::Access::here_and_there);
  const std::uint64_t before = ring::pages_before(
      pages_.subspan(position_, stretch_end_ - position_), page_size_, from_, scale_);
  expect(windows_ > 1 ? MappedFile::Access::all_in_order : MappedFile::Access::usual);
  position_ += before * page_size_;
  left_out_ = before > 0;
  return true;
}

// Brings pages from `position_` on into memory, up to the first that cannot be read; returns how
// many bytes those are. A page that was cut off in its middle counts as far as it is there.
std::uint64_t FilePages::bring() {
  const std::uint64_t begin = base_ + position_;
  const std::uint64_t length = file_.length();
  if (length <= begin) return 0;
  std::uint64_t size = std::min({stretch_end_ - position_, window_, length - begin});
  while (!file_.bring(begin, size)) {
    if (size <= page_size_) return 0;
    size = (size / 2 + page_size_ - 1) / page_size_ * page_size_;
  }
  return size;
}

ring::PageRun FilePages::next(bool) {
  if (last_ - held_from_ >= kLetGo) {
    file_.let_go(base_ + held_from_, last_ - held_from_);
    held_from_ = last_;
  }
  while (position_ < stretch_end_ || next_stretch()) {
    if (++windows_ == 2) expect(MappedFile::Access::all_in_order);
    const std::uint64_t begin = position_;
    const std::uint64_t size = bring();
    if (size > 0) {
      position_ += size;
      last_ = begin;
      return {pages_.subspan(begin, size), begin / page_size_, std::exchange(left_out_, false)};
    }
    if (file_.length() <= base_ + begin) {
      stretch_end_ = position_;  // it was cut: next_stretch() tells
      continue;
    }
    ++unreadable_;
    position_ += page_size_;
    left_out_ = true;
  }
  return {};
}

ring::PageRun PagesOfTwo::next(bool keep) {
  if (!is_at_second_) {
    const ring::PageRun run = first_->next(keep);
    if (!run.bytes.empty()) return run;
    is_at_second_ = true;
  }
  ring::PageRun run = second_->next(keep);
  run.first_page += pages_of_first_;
  return run;
}

CompressedPages::CompressedPages(std::span<const std::uint8_t> blocks, Compression compression,
                                 std::uint32_t page_size, std::uint64_t most)
    : reader_(blocks),
      compression_(compression),
      page_size_(page_size),
      most_(most),
      blocks_left_(reader_.number<std::uint32_t>()) {}

ring::PageRun CompressedPages::next(bool keep) {
  if (keep) std::swap(current_, kept_);
  while (blocks_left_ > 0 && reader_.ok()) {
    --blocks_left_;
    const Block block = read_block(reader_);
    if (!reader_.ok()) break;
    if (!plausible(block, compression_, most_) || !decompress(block, compression_, current_)) {
      ++unreadable_;
      continue;
    }
    if (current_.empty()) continue;
    ring::PageRun run{current_, next_page_, false};
    next_page_ += (current_.size() + page_size_ - 1) / page_size_;
    return run;
  }
  // A chain that ends too early, or bytes behind its end: its count or a size is damaged.
  if (!ended_ && (!reader_.ok() || reader_.left() > 0)) ++unreadable_;
  ended_ = true;
  return {};
}

}  // namespace skbtrail::tracedat
