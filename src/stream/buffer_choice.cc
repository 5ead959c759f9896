#include "stream/buffer_choice.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "ring/page_decoder.h"

namespace skbtrail::stream {
namespace {

using tracedat::Buffer;

constexpr std::size_t kIds = std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1;
constexpr std::size_t kPagesPerCpu = 16;

bool has_data(const Buffer& buffer) {
  return std::any_of(buffer.cpus.begin(), buffer.cpus.end(),
                     [](const tracedat::CpuData& cpu) { return !cpu.stored.empty(); });
}

// The ids on pages spread over the first run of every CPU, the first and the last among them.
std::vector<bool> seen_ids(const tracedat::Reader& file, const Buffer& buffer) {
  std::vector<bool> ids(kIds);
  for (const tracedat::CpuData& cpu : buffer.cpus) {
    const auto source = file.pages(buffer, cpu);
    const auto bytes = source->next(false).bytes;
    const std::size_t pages = bytes.size() / buffer.page_size;
    const std::size_t looks = std::min(pages, kPagesPerCpu);
    for (std::size_t i = 0; i < looks; ++i) {
      const std::size_t page = looks == 1 ? 0 : i * (pages - 1) / (looks - 1);
      ring::PageDecoder decoder;
      if (decoder.start(bytes.subspan(page * buffer.page_size, buffer.page_size), cpu.cpu) !=
          ring::PageDamage::none) {
        continue;
      }
      for (RawEvent event; decoder.next(event);) ids[event.id] = true;
    }
  }
  return ids;
}

bool overlap(const std::vector<bool>& one, const std::vector<bool>& other) {
  for (std::size_t id = 0; id < kIds; ++id) {
    if (one[id] && other[id]) return true;
  }
  return false;
}

// Collects buffers that can be read together.
class Joiner {
 public:
  explicit Joiner(const tracedat::Reader& file) : file_(file) {}

  // Why it cannot be read with those before it; empty when it is joined to them.
  std::string join(const Buffer& buffer) {
    if (!joined_.empty() && buffer.clock != joined_.front().buffer->clock) {
      return fmt::format("their clocks differ ({} and {})", joined_.front().buffer->clock,
                         buffer.clock);
    }
    std::vector<bool> ids = seen_ids(file_, buffer);
    if (overlap(of_all_, ids)) return "both hold the same events, which would be counted twice";
    for (std::size_t id = 0; id < kIds; ++id) {
      if (ids[id]) of_all_[id] = true;
    }
    joined_.push_back({&buffer, std::move(ids)});
    return "";
  }

  std::vector<ChosenBuffer> chosen() const {
    std::vector<ChosenBuffer> chosen;
    for (const Joined& own : joined_) {
      ChosenBuffer buffer{own.buffer, {}};
      if (joined_.size() > 1) {
        const bool main = &own == &joined_.front();
        buffer.skip.resize(kIds, false);
        for (std::size_t id = 0; id < kIds; ++id) {
          buffer.skip[id] = main ? of_all_[id] && !own.ids[id] : !own.ids[id];
        }
      }
      chosen.push_back(std::move(buffer));
    }
    return chosen;
  }

 private:
  struct Joined {
    const Buffer* buffer;
    std::vector<bool> ids;
  };

  const tracedat::Reader& file_;
  std::vector<Joined> joined_;  // no two hold the same id
  std::vector<bool> of_all_ = std::vector<bool>(kIds);
};

// The first one of that name; "top" is the one without a name rather than an instance called so.
const Buffer* find_named(const tracedat::Reader& file, const std::string& name) {
  const Buffer* found = nullptr;
  for (const Buffer& buffer : file.buffers()) {
    if (shown_name(buffer) != name) continue;
    if (found == nullptr || (buffer.name.empty() && !found->name.empty())) found = &buffer;
  }
  return found;
}

Result<BufferChoice> choose_named(const tracedat::Reader& file,
                                  const std::vector<std::string>& wanted) {
  std::vector<const Buffer*> named;
  for (const std::string& name : wanted) {
    const Buffer* found = find_named(file, name);
    if (found == nullptr) {
      std::string names;
      for (const Buffer& buffer : file.buffers()) names += " " + shown_name(buffer);
      return fail(ErrorKind::usage, "{} has no buffer \"{}\"; it has:{}", file.path(), name, names);
    }
    if (std::find(named.begin(), named.end(), found) == named.end()) named.push_back(found);
  }
  BufferChoice choice;
  for (const Buffer& buffer : file.buffers()) {
    const bool is_named = std::find(named.begin(), named.end(), &buffer) != named.end();
    if (!is_named && has_data(buffer)) choice.not_read.push_back(&buffer);
  }
  if (named.size() == 1) {
    choice.read.push_back({named.front(), {}});
    return choice;
  }
  Joiner joiner(file);
  for (const Buffer* buffer : named) {
    const std::string reason = joiner.join(*buffer);
    if (!reason.empty()) {
      return fail(ErrorKind::usage,
                  "the buffers \"{}\" and \"{}\" cannot be read together: {}; read "
                  "one at a time: --buffer {}",
                  wanted.front(), shown_name(*buffer), reason, wanted.front());
    }
  }
  choice.read = joiner.chosen();
  return choice;
}

}  // namespace

std::string shown_name(const Buffer& buffer) {
  return buffer.name.empty() ? "top" : buffer.name;
}

Result<BufferChoice> choose_buffers(const tracedat::Reader& file,
                                    const std::vector<std::string>& wanted) {
  if (!wanted.empty()) return choose_named(file, wanted);
  std::vector<const Buffer*> filled;
  for (const Buffer& buffer : file.buffers()) {
    if (has_data(buffer)) filled.push_back(&buffer);
  }
  BufferChoice choice;
  if (filled.size() <= 1) {
    choice.read.push_back({filled.empty() ? &file.buffers().front() : filled.front(), {}});
    return choice;
  }
  Joiner joiner(file);
  for (const Buffer* buffer : filled) {
    if (!joiner.join(*buffer).empty()) choice.not_read.push_back(buffer);
  }
  choice.read = joiner.chosen();
  return choice;
}

}  // namespace skbtrail::stream
