#include "tracedat/page_sources.h"

#include <algorithm>

namespace skbtrail::tracedat {

MappedPages::MappedPages(const MappedFile* file, std::span<const std::uint8_t> pages,
                         std::uint32_t page_size)
    : file_(file), pages_(pages), page_size_(page_size) {}

ring::PageRun MappedPages::next(bool) {
  if (position_ >= pages_.size()) return {};
  std::uint64_t begin = position_;
  std::uint64_t end = pages_.size();
  if (file_ != nullptr) {
    const auto base = static_cast<std::uint64_t>(pages_.data() - file_->bytes().data());
    const auto data = file_->next_data(base + begin);
    if (!data || data->begin >= base + pages_.size()) {
      position_ = pages_.size();
      return {};
    }
    // The page in which the data begins, up to the end of the one in which it ends.
    begin = std::max(begin, (std::max(data->begin, base) - base) / page_size_ * page_size_);
    end = (data->end - base + page_size_ - 1) / page_size_ * page_size_;
    end = std::min<std::uint64_t>(end, pages_.size());
  }
  position_ = end;
  run_ = pages_.subspan(begin, end - begin);
  passed_ = 0;
  return {run_, begin / page_size_};
}

// A capture may be larger than memory; and who gives pages back while others work has less to do at
// the end.
void MappedPages::passed(std::uint64_t bytes) {
  if (file_ != nullptr) file_->let_go(run_.subspan(passed_, bytes - passed_));
  passed_ = bytes;
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
    if (!plausible(block, compression_, kMaxBlock) || !decompress(block, compression_, current_)) {
      ++unreadable_;
      continue;
    }
    if (current_.empty()) continue;
    const ring::PageRun run{current_, next_page_};
    next_page_ += (current_.size() + page_size_ - 1) / page_size_;
    return run;
  }
  // A chain that ends too early, or bytes behind its end: its count or a size is damaged.
  if (!ended_ && (!reader_.ok() || reader_.left() > 0)) ++unreadable_;
  ended_ = true;
  return {};
}

}  // namespace skbtrail::tracedat
