#include "tracedat/reader.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "ring/page_search.h"
#include "tracedat/other_format.h"
#include "tracedat/page_sources.h"
#include "tracedat/recovery.h"
#include "tracedat/symbols.h"
#include "tracedat/text.h"

namespace skbtrail::tracedat {
namespace {

constexpr std::uint32_t kUsualPageSize = 4096;
constexpr std::uint32_t kLeastPageSize = 4096;

bool plausible_page_size(std::uint32_t size) {
  return size >= kLeastPageSize && size <= 1U << 20 && (size & (size - 1)) == 0;
}

bool is_compressed(const Buffer& buffer) {
  return !buffer.cpus.empty() && buffer.cpus.front().compression != Compression::none;
}

constexpr std::uint64_t kLooks = 8;

// The smallest size that has room for the fullest page at multiples of `largest`: whatever the size
// of pages is, some begin there.
std::uint32_t least_size(std::span<const std::uint8_t> bytes, std::uint32_t largest) {
  std::uint32_t size = kLeastPageSize;
  for (std::uint64_t at = 0, i = 0; i < kLooks && at < bytes.size(); at += largest, ++i) {
    const auto page = bytes.subspan(at, std::min<std::uint64_t>(largest, bytes.size() - at));
    if (!ring::looks_like_page(page, {})) continue;
    while (size < page.size() && !ring::looks_like_page(page.first(size), {})) size *= 2;
  }
  return size;
}

// Whether pages of this size begin at multiples of it: at an odd one no larger page begins. A page
// that is damaged hides no other. Events in the middle of a large page can look like a page (in
// captures of the scheduler one place of 5,000 does), so that least_size() goes first.
bool pages_of_size(std::span<const std::uint8_t> bytes, std::uint32_t size) {
  constexpr Nanoseconds kNear = Nanoseconds{1} << 44;  // hours, on any clock
  const auto first = load<Nanoseconds>(bytes.data());
  for (std::uint64_t at = size, i = 0; i < kLooks && at + size <= bytes.size();
       at += 2 * std::uint64_t{size}, ++i) {
    const auto page = bytes.subspan(at, size);
    const auto time = load<Nanoseconds>(page.data());
    if (time >= first && time - first < kNear && ring::looks_like_page(page, {})) return true;
  }
  return false;
}

// Where the first page lies that was not taken out: behind a hole, or behind zeros where the file
// was copied. No page has neither a time nor events.
std::uint64_t first_page(const MappedFile& file, std::uint32_t page_size) {
  const auto bytes = file.bytes();
  std::uint64_t at = 0;
  while (const auto data = file.next_data(at)) {
    at = std::max(at, data->begin / page_size * page_size);
    for (; at < data->end; at += page_size) {
      const auto head = bytes.subspan(at, std::min<std::uint64_t>(16, bytes.size() - at));
      if (std::any_of(head.begin(), head.end(), [](std::uint8_t byte) { return byte != 0; })) {
        return at;
      }
    }
  }
  return bytes.size();
}

}  // namespace

Reader::Reader() : symbols_(std::make_unique<Symbols>()) {}
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;
Reader::~Reader() = default;

Result<Reader> Reader::open(const std::string& path) {
  auto file = MappedFile::open(path);
  if (!file) return pass(file);
  Reader reader;
  reader.path_ = path;
  reader.files_.push_back(std::make_unique<MappedFile>(std::move(*file)));
  reader.bytes_ = reader.files_.front()->bytes();
  return read(std::move(reader));
}

Result<Reader> Reader::parse(std::span<const std::uint8_t> bytes, const std::string& name) {
  Reader reader;
  reader.bytes_ = bytes;
  reader.path_ = name;
  return read(std::move(reader));
}

Result<Reader> Reader::read(Reader reader) {
  if (auto headers = reader.read_headers(); !headers) return pass(headers);
  if (!reader.has_data() || reader.is_unfinished()) reader.read_files_of_a_killed_recorder();
  if (!reader.has_data()) reader.recover_data();
  reader.look_for_unclaimed_pages();
  reader.look_for_repeated_ids();
  reader.look_for_large_pages();
  // A capture without events is none to complain about if nothing says that there were some.
  if (reader.buffers_.empty() || (!reader.has_data() && !reader.damage_.empty())) {
    std::string reasons;
    for (const std::string& line : reader.damage_) reasons += "\n  " + line;
    return fail(ErrorKind::damaged, "{}: no readable trace data in this file{}", reader.path_,
                reasons);
  }
  return reader;
}

Result<void> Reader::read_headers() {
  ByteReader reader(bytes_);
  const auto magic = reader.bytes(kMagic.size());
  if (!std::equal(magic.begin(), magic.end(), kMagic.begin(), kMagic.end()) ||
      reader.text(kTracing.size()) != kTracing) {
    const std::string_view other = other_format(bytes_);
    return fail(ErrorKind::damaged, "{} is not a trace.dat ({})", path_,
                other.empty() ? "it does not start with its magic" : other);
  }
  const std::string_view version = reader.string();
  const auto big_endian = reader.number<std::uint8_t>();
  const auto long_size = reader.number<std::uint8_t>();
  page_size_ = reader.number<std::uint32_t>();
  if (!reader.ok()) return fail(ErrorKind::damaged, "{}: the file ends inside its header", path_);
  if (big_endian != 0) {
    return fail(ErrorKind::unsupported,
                "{}: recorded on a big-endian machine; only little-endian "
                "captures can be read",
                path_);
  }
  if (long_size != 8) {
    return fail(ErrorKind::unsupported,
                "{}: recorded by a {}-bit user space; only 64-bit captures "
                "can be read",
                path_, long_size * 8);
  }
  if (!plausible_page_size(page_size_)) {
    note(fmt::format("a page size of {} bytes makes no sense; {} is assumed", page_size_,
                     kUsualPageSize));
    page_size_ = kUsualPageSize;
  }
  metadata_end_ = reader.position();
  if (version == "6") {
    version_ = 6;
    read_v6(reader);
    return {};
  }
  if (version == "7") {
    version_ = 7;
    return read_v7(reader);
  }
  return fail(ErrorKind::unsupported, "{}: trace.dat version {} (6 and 7 can be read)", path_,
              version);
}

// ------------------------------------------------------------------------------- both versions

// A lying table can be wrong in thousands of its entries. The first lines tell people enough; the
// last one is the number of those that follow.
void Reader::note(std::string message) {
  constexpr std::size_t kMostLines = 20;
  if (std::find(damage_.begin(), damage_.end(), message) != damage_.end()) return;
  if (damage_.size() < kMostLines) return damage_.push_back(std::move(message));
  if (damage_not_listed_++ > 0) damage_.pop_back();
  damage_.push_back(fmt::format("and {} more", damage_not_listed_));
}

// What the whole report rests on: however long the list is, it stands in it.
void Reader::note_first(std::string message) {
  damage_.insert(damage_.begin(), std::move(message));
}

// What does not overlap is no longer than the file. What does could be named by a few bytes, and
// read again and again.
bool Reader::may_take(std::uint64_t size) {
  taken_ += size;
  return taken_ <= bytes_.size();
}

void Reader::read_option(OptionId id, ByteReader option) {
  switch (id) {
    case OptionId::buffer:
      return version_ == 6 ? read_v6_instance(option) : read_v7_buffer(option);
    case OptionId::header_info:
    case OptionId::ftrace_events:
    case OptionId::event_formats:
    case OptionId::kallsyms:
    case OptionId::printk:
    case OptionId::cmdlines:
      if (version_ == 7) return read_v7_section(id, option.number<std::uint64_t>());
      return note(fmt::format("option {} does not belong into a version 6 file",
                              static_cast<unsigned>(id)));
    case OptionId::cpucount:
      return read_cpu_count(option);
    case OptionId::tsc2nsec:
      return read_time_scale(option);
    default:
      break;
  }
  const std::string_view text = option.text(option.left());
  if (id == OptionId::cpustat) cpu_stats_.push_back(without_nul(text));
  if (id == OptionId::uname) uname_ = without_nul(text);
  if (id == OptionId::traceclock) {
    const std::string clock = selected_clock(text);
    if (!clock.empty()) clock_ = clock;
  }
  options_[id] = without_nul(text);
}

// 0 stands for a number that nothing tells.
void Reader::read_cpu_count(ByteReader& reader) {
  cpu_count_ = reader.number<std::uint32_t>();
  if (cpu_count_ <= kMaxCpus) return;
  note(fmt::format("{} CPUs make no sense", cpu_count_));
  cpu_count_ = 0;
}

// u32 mult, u32 shift, u64 offset. As in trace-cmd the offset is not added
// (timestamp_calc(), 3.1.6).
void Reader::read_time_scale(ByteReader option) {
  ring::TimeScale scale;
  scale.mult = option.number<std::uint32_t>();
  scale.shift = option.number<std::uint32_t>();
  constexpr std::uint32_t kMostShift = 63;
  if (!option.ok() || scale.shift > kMostShift) {
    return note("the conversion from cycles to nanoseconds is damaged; times are in cycles");
  }
  time_scale_ = scale;
}

void Reader::read_ftrace_formats(ByteReader& reader) {
  for (auto count = reader.number<std::uint32_t>(); count > 0 && reader.ok(); --count) {
    const std::string_view text = reader.text(reader.number<std::uint64_t>());
    if (reader.ok()) formats_.push_back({"ftrace", text});
  }
  if (!reader.ok()) note("the formats of ftrace's own events are cut off");
}

void Reader::read_event_formats(ByteReader& reader) {
  for (auto systems = reader.number<std::uint32_t>(); systems > 0 && reader.ok(); --systems) {
    const std::string_view system = reader.string();
    for (auto count = reader.number<std::uint32_t>(); count > 0 && reader.ok(); --count) {
      const std::string_view text = reader.text(reader.number<std::uint64_t>());
      if (reader.ok()) formats_.push_back({system, text});
    }
  }
  if (!reader.ok()) note("the event formats are cut off");
}

// Per-CPU tables are indexed by this number, so a lying one must not get far.
bool Reader::plausible_cpu(CpuId cpu) {
  if (cpu < kMaxCpus) return true;
  note(fmt::format("CPU {} makes no sense; its data is skipped", cpu));
  return false;
}

bool Reader::has_room_for_cpu() {
  if (++cpu_data_ <= kMaxCpuData) return true;
  note("too many CPUs have data; the rest is skipped");
  return false;
}

std::span<const std::uint8_t> Reader::file_range(std::uint64_t offset, std::uint64_t size,
                                                 CpuId cpu) {
  std::uint64_t there = size;
  if (offset > bytes_.size() || size > bytes_.size() - offset) {
    there = offset < bytes_.size() ? bytes_.size() - offset : 0;
    note(fmt::format("CPU {}: {} of {} bytes of data lie beyond the end of the file", cpu,
                     size - there, size));
  }
  if (there == 0) return {};
  const auto range = bytes_.subspan(offset, there);
  return claim(range, cpu) ? range : std::span<const std::uint8_t>{};
}

// No byte belongs to two CPUs. It keeps a lying table from counting events twice, and from making a
// small file as long to read as a large one.
bool Reader::claim(std::span<const std::uint8_t> range, CpuId cpu) {
  const std::uint64_t begin = offset_of(range), end = begin + range.size();
  const auto next = claimed_.lower_bound(begin);
  if ((next != claimed_.end() && next->first < end) ||
      (next != claimed_.begin() && std::prev(next)->second > begin)) {
    note(fmt::format("CPU {}: its data at offset {:#x} belongs to another CPU, too; it is skipped",
                     cpu, begin));
    return false;
  }
  claimed_.emplace(begin, end);
  return true;
}

std::uint64_t Reader::offset_of(std::span<const std::uint8_t> range) const {
  return static_cast<std::uint64_t>(range.data() - bytes_.data());
}

// Up to two places of the file tell the size of a page, and both may lie. A larger size than the
// right one hides all pages but the first of each without a word. So the pages tell: the smallest
// size that they fit in and at which some begin, or else the larger one of both places.
void Reader::settle_page_size(Buffer& buffer, std::uint32_t other) {
  if (!plausible_page_size(buffer.page_size)) {
    const std::uint32_t assumed = plausible_page_size(other) ? other : kUsualPageSize;
    note(fmt::format("buffer \"{}\": a page size of {} bytes makes no sense; {} is assumed",
                     buffer.name, buffer.page_size, assumed));
    buffer.page_size = assumed;
  }
  const std::uint32_t largest =
      plausible_page_size(other) ? std::max(other, buffer.page_size) : buffer.page_size;
  if (largest == kLeastPageSize) return;
  for (const CpuData& cpu : buffer.cpus) {
    const auto source = pages(buffer, cpu);
    const auto bytes = source->next(false).bytes;
    if (bytes.size() < 2 * kLeastPageSize) continue;
    std::uint32_t size = least_size(bytes, largest);
    while (size < largest && !pages_of_size(bytes, size)) size *= 2;
    if (size != buffer.page_size) {
      note(fmt::format("buffer \"{}\": the pages are of {} bytes, not of {}", buffer.name, size,
                       buffer.page_size));
      buffer.page_size = size;
    }
    return;
  }
}

bool Reader::has_data() const {
  for (const Buffer& buffer : buffers_) {
    for (const CpuData& cpu : buffer.cpus) {
      if (!cpu.stored.empty()) return true;
    }
  }
  return false;
}

std::unique_ptr<ring::PageSource> Reader::pages(const Buffer& buffer, const CpuData& cpu,
                                                Nanoseconds from) const {
  if (cpu.compression != Compression::none) {
    return std::make_unique<CompressedPages>(
        cpu.stored, cpu.compression, buffer.page_size,
        CompressedPages::max_block(buffer.page_size, compressed_cpus()));
  }
  if (cpu.file == nullptr) return std::make_unique<PagesInMemory>(cpu.stored);
  auto stored =
      std::make_unique<FilePages>(*cpu.file, cpu.stored, buffer.page_size, from, time_scale_);
  if (cpu.rest.empty()) return stored;
  return std::make_unique<PagesOfTwo>(
      std::move(stored), cpu.stored.size() / buffer.page_size,
      std::make_unique<FilePages>(*cpu.rest_file, cpu.rest, buffer.page_size, from, time_scale_));
}

std::string_view Reader::option_text(OptionId id) const {
  const auto found = options_.find(id);
  return found == options_.end() ? std::string_view{} : found->second;
}

// ------------------------------------------------------------------------------- recovery

// Event ids are the one thing in a page that the rest of the file can confirm.
std::vector<bool> Reader::known_ids() const {
  std::vector<bool> ids;
  for (const FormatText& format : formats_) {
    const auto id = event_id(format.text);
    if (!id) continue;
    if (ids.size() <= *id) ids.resize(std::size_t{*id} + 1);
    ids[*id] = true;
  }
  return ids;
}

// Two events with one id cannot be told apart: the first one stands. A format that stands there
// twice does no harm.
void Reader::look_for_repeated_ids() {
  std::map<std::uint16_t, std::string_view> texts;
  for (const FormatText& format : formats_) {
    const auto id = event_id(format.text);
    if (!id) continue;
    const auto [first, is_new] = texts.emplace(*id, format.text);
    if (!is_new && first->second != format.text) {
      note(fmt::format("two formats have the event id {}; the first one stands", *id));
    }
  }
}

// Of all buffers: they are read at once.
std::size_t Reader::compressed_cpus() const {
  std::size_t cpus = 0;
  for (const Buffer& buffer : buffers_) {
    if (is_compressed(buffer)) cpus += buffer.cpus.size();
  }
  return cpus;
}

// A thousand CPUs with sub-buffers of 64 KB, say.
void Reader::look_for_large_pages() {
  const std::size_t cpus = compressed_cpus();
  for (const Buffer& buffer : buffers_) {
    const std::uint64_t usual = CompressedPages::kUsualPages * buffer.page_size;
    const std::uint64_t most = CompressedPages::max_block(buffer.page_size, cpus);
    if (!is_compressed(buffer) || most >= usual) continue;
    note(
        fmt::format("buffer \"{}\": compressed pages of {} bytes of {} CPUs take more than {} GiB "
                    "of memory; `trace-cmd convert --compression none` makes them readable",
                    buffer.name, buffer.page_size, cpus, CompressedPages::kMostMemory >> 30));
  }
}

// Pages before, between and behind the data of the CPUs: the tables said too little, or one of them
// is not there any more.
void Reader::look_for_unclaimed_pages() {
  if (!damage_.empty() || claimed_.empty() || bytes_.empty()) return;
  const std::uint32_t page_size = buffers_.front().page_size;
  const std::vector<bool> ids = known_ids();
  std::uint64_t begin = metadata_end_;
  for (auto range = claimed_.begin();; ++range) {
    const std::uint64_t end = range == claimed_.end() ? bytes_.size() : range->first;
    const auto gap = bytes_.subspan(0, end);
    auto found = find_pages(file(), gap, begin, page_size, ids);
    if (found.empty() && compression_ != Compression::none) {
      found = find_chains(file(), gap, begin, page_size, compression_);
    }
    if (!found.empty()) {
      return note(fmt::format("at offset {:#x} lie pages that belong to no CPU; they are not read",
                              offset_of(found.front())));
    }
    if (range == claimed_.end()) return;
    begin = range->second;
  }
}

void Reader::recover_data() {
  Buffer found;
  found.page_size = buffers_.empty() ? page_size_ : buffers_.front().page_size;
  found.clock = clock_;
  Compression compression = Compression::none;
  auto ranges = find_pages(file(), bytes_, metadata_end_, found.page_size, known_ids());
  if (ranges.empty() && compression_ != Compression::none) {
    compression = compression_;
    ranges = find_chains(file(), bytes_, metadata_end_, found.page_size, compression_);
  }
  if (ranges.empty()) return;
  std::uint64_t size = 0;
  for (const auto& range : ranges) {
    found.cpus.push_back({static_cast<CpuId>(found.cpus.size()), range, compression, file()});
    size += range.size();
  }
  note_first(
      fmt::format("RECOVERED: {} bytes of events found at offset {:#x} without a table that says "
                  "whose they are; "
                  "the CPUs are numbered as they lie there, and buffers are not told apart",
                  size, offset_of(ranges.front())));
  buffers_.clear();
  buffers_.push_back(std::move(found));
}

bool Reader::is_unfinished() const {
  return has_line(option_text(OptionId::skbtrail_recorder), kUnfinished);
}

// Recorders collect a CPU's pages in a file of its own and put them into FILE at the end. trace-cmd
// has not written the tables of FILE until then; a FILE that holds the metadata alone is what
// `trace-cmd restore -c` makes for that case. Ours says that it is not finished.
void Reader::read_files_of_a_killed_recorder() {
  if (files_.empty()) return;
  const bool is_ours = is_unfinished();
  const bool has_places = has_data();  // the pages were being moved to them
  if (!is_ours && damage_.empty() && !buffers_.empty()) return;  // nothing was recorded
  if (buffers_.empty()) buffers_.push_back({"", clock_, page_size_, {}});
  for (Buffer& buffer : buffers_) read_files_of(buffer);
  if (has_places && files_.size() > 1) {
    note_first(
        fmt::format("RECOVERED: the recorder was stopped before it finished; the events are "
                    "from this file and {}.cpu*",
                    path_));
  } else if (!has_places && has_data()) {
    note_first(fmt::format(
        "RECOVERED: the recorder was stopped before it finished; the events are from {}.cpu*, "
        "without what it would have written last: names of tasks, counters of lost events",
        path_));
  } else if (is_ours) {
    note_first(
        fmt::format("the recorder was stopped before it finished, and there is no {}.cpu*", path_));
  } else {
    buffers_.clear();
  }
  // Of a version that did not say where.
  const bool moved =
      !has_places && std::any_of(files_.begin() + 1, files_.end(), [](const auto& file) {
        return file->bytes().size() >= sizeof(Nanoseconds) &&
               load<Nanoseconds>(file->bytes().data()) == 0;
      });
  if (moved) note("the first events were already moved to their place; they are not read");
}

void Reader::read_files_of(Buffer& buffer) {
  if (buffer.name.find('/') != std::string::npos) return;  // nobody records such a name
  const CpuId most = cpu_count_ > 0 ? std::min(cpu_count_, kMaxCpus) : kMaxCpus;
  for (CpuId cpu = 0; cpu < most; ++cpu) {
    const std::string path = path_ + spool_suffix(buffer.name, cpu);
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
      if (cpu_count_ == 0) break;
      continue;
    }
    auto file = MappedFile::open(path);
    if (!file) {
      note(std::move(file.error().message));
      continue;
    }
    files_.push_back(std::make_unique<MappedFile>(std::move(*file)));
    const MappedFile* data = files_.back().get();
    const auto known = std::find_if(buffer.cpus.begin(), buffer.cpus.end(),
                                    [=](const CpuData& other) { return other.cpu == cpu; });
    if (known != buffer.cpus.end()) {
      read_rest(*known, *data, buffer.page_size);
    } else if (!data->bytes().empty()) {
      buffer.cpus.push_back({cpu, data->bytes(), Compression::none, data});
    }
  }
}

// Its first pages are in their place if they are not in `rest` any more. Where the disk has no room
// for both each chunk is taken out of that as soon as it is copied: see record/assemble. The last
// ones wait in memory, and are written to their place behind all others, or into `rest`.
void Reader::read_rest(CpuData& cpu, const MappedFile& rest, std::uint32_t page_size) {
  const std::uint64_t size = cpu.stored.size();
  const std::uint64_t there = rest.bytes().size();
  const std::uint64_t moved = first_page(rest, page_size);
  if (there < size) {
    const std::uint64_t end = offset_of(cpu.stored) + size;
    const auto data = cpu.file->next_data(end - (size - there));
    if (moved < there || !data || data->begin >= end) {
      note(fmt::format("CPU {}: the last {} bytes of its events were not written", cpu.cpu,
                       size - there));
    }
  }
  if (moved >= there) return;
  cpu.rest = rest.bytes().subspan(moved);
  cpu.rest_file = &rest;
  cpu.stored = cpu.stored.first(std::min(moved, size));
  if (!cpu.stored.empty()) return;
  cpu.stored = std::exchange(cpu.rest, {});
  cpu.file = std::exchange(cpu.rest_file, nullptr);
}

}  // namespace skbtrail::tracedat
