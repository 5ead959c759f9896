#include "stream/trace.h"

#include "base/error.h"

namespace skbtrail::stream {
namespace {

std::string shown_name(const tracedat::Buffer& buffer) {
  return buffer.name.empty() ? "top" : buffer.name;
}

bool has_data(const tracedat::Buffer& buffer) {
  for (const tracedat::CpuData& cpu : buffer.cpus) {
    if (!cpu.pages.empty()) return true;
  }
  return false;
}

Result<const tracedat::Buffer*> choose_buffer(const tracedat::Reader& file,
                                              const std::string& wanted) {
  const tracedat::Buffer* chosen = nullptr;
  std::string names;
  for (const tracedat::Buffer& buffer : file.buffers()) {
    if (wanted == shown_name(buffer)) return &buffer;
    if (chosen == nullptr && has_data(buffer)) chosen = &buffer;
    names += " " + shown_name(buffer);
  }
  if (!wanted.empty()) {
    return fail(ErrorKind::usage, "{} has no buffer \"{}\"; it has:{}", file.path(), wanted, names);
  }
  return chosen != nullptr ? chosen : &file.buffers().front();
}

}  // namespace

Result<Trace> Trace::open(const std::string& path, const std::string& buffer) {
  auto file = tracedat::Reader::open(path);
  if (!file) return pass(file);
  Trace trace;
  trace.file_ = std::make_unique<tracedat::Reader>(std::move(*file));
  auto chosen = choose_buffer(*trace.file_, buffer);
  if (!chosen) return pass(chosen);
  trace.buffer_ = *chosen;
  trace.catalog_ = std::make_unique<EventCatalog>(trace.file_->formats());
  return trace;
}

std::vector<std::string> Trace::other_buffers() const {
  std::vector<std::string> names;
  for (const tracedat::Buffer& buffer : file_->buffers()) {
    if (&buffer != buffer_ && has_data(buffer)) names.push_back(shown_name(buffer));
  }
  return names;
}

Merge Trace::events() const {
  std::vector<ring::CpuPages> cpus;
  for (const tracedat::CpuData& cpu : buffer_->cpus) {
    cpus.emplace_back(cpu.pages, buffer_->page_size, cpu.cpu);
  }
  return Merge(cpus);
}

}  // namespace skbtrail::stream
