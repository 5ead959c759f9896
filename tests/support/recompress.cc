#include "support/recompress.h"

#include <zlib.h>
#include <zstd.h>

#include <map>
#include <stdexcept>
#include <vector>

#include "support/all_pages.h"
#include "support/page_builder.h"

namespace skbtrail::test {
namespace {

using tracedat::Compression;
using tracedat::OptionId;

std::string compress_zstd(const std::string& data) {
  std::string out(ZSTD_compressBound(data.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), data.data(), data.size(), 3));
  return out;
}

std::string compress_zlib(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string out(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(out.data()), &size,
                reinterpret_cast<const Bytef*>(data.data()), data.size(), 9) != Z_OK) {
    throw std::runtime_error("compress2");
  }
  out.resize(size);
  return out;
}

void put_text(std::string& out, std::string_view text) {
  put(out, std::uint64_t{text.size()});
  out += text;
}

std::string option(OptionId id, const std::string& data) {
  std::string out;
  put(out, static_cast<std::uint16_t>(id));
  put(out, static_cast<std::uint32_t>(data.size()));
  return out + data;
}

std::string formats(const tracedat::Reader& file, bool of_ftrace) {
  std::map<std::string_view, std::vector<std::string_view>> systems;
  for (const tracedat::FormatText& format : file.formats()) {
    if ((format.system == "ftrace") == of_ftrace) systems[format.system].push_back(format.text);
  }
  std::string out;
  if (!of_ftrace) put(out, static_cast<std::uint32_t>(systems.size()));
  if (of_ftrace && systems.empty()) put(out, std::uint32_t{0});
  for (const auto& [system, texts] : systems) {
    if (!of_ftrace) out += std::string(system) + '\0';
    put(out, static_cast<std::uint32_t>(texts.size()));
    for (const std::string_view text : texts) put_text(out, text);
  }
  return out;
}

// The file as it grows, and the options that point into it.
class File {
 public:
  explicit File(const Recompressed& how) : how_(how) {
    bytes_ = std::string("\x17\x08\x44tracing7\0\0\x08", 14);
    put(bytes_, std::uint32_t{4096});
    bytes_ += how.compression == Compression::zstd ? std::string("zstd\0001.5.4\0", 11)
                                                   : std::string("zlib\0001.2.13\0", 12);
    options_at_ = bytes_.size();
    put(bytes_, std::uint64_t{0});
  }

  void header(OptionId id, std::uint64_t size) {
    put(bytes_, static_cast<std::uint16_t>(id));
    put(bytes_, std::uint16_t{1});
    put(bytes_, std::uint32_t{0});
    put(bytes_, size);
  }
  void section(OptionId id, const std::string& body) {
    std::string offset;
    put(offset, std::uint64_t{bytes_.size()});
    options_ += option(id, offset);
    const std::string compressed = block(body, how_.compression);
    header(id, compressed.size());
    bytes_ += compressed;
  }
  // `chains`: of each CPU, as chain() makes them.
  void buffer(const tracedat::Buffer& buffer, const std::vector<std::string>& chains) {
    std::string about;
    const std::size_t at = bytes_.size();
    put(about, std::uint64_t{at});
    about += buffer.name + '\0' + buffer.clock + '\0';
    put(about, buffer.page_size);
    put(about, static_cast<std::uint32_t>(buffer.cpus.size()));
    header(OptionId::buffer, 0);
    for (std::size_t i = 0; i < chains.size(); ++i) {
      bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
      put(about, buffer.cpus[i].cpu);
      put(about, std::uint64_t{bytes_.size()});
      put(about, std::uint64_t{chains[i].size() - sizeof(std::uint32_t)});
      bytes_ += chains[i];
    }
    const std::uint64_t size = bytes_.size() - at - 16;
    bytes_.replace(at + 8, sizeof size, reinterpret_cast<const char*>(&size), sizeof size);
    options_ += option(OptionId::buffer, about);
  }
  void add(const std::string& options) { options_ += options; }
  std::string finish() {
    std::string none;
    put(none, std::uint64_t{0});
    options_ += option(OptionId::done, none);
    const std::uint64_t at = bytes_.size();
    bytes_.replace(options_at_, sizeof at, reinterpret_cast<const char*>(&at), sizeof at);
    const std::string compressed = block(options_, how_.compression);
    header(OptionId::done, compressed.size());
    return bytes_ + compressed;
  }

 private:
  static constexpr std::size_t kAlignment = 4096;

  const Recompressed& how_;
  std::string bytes_;
  std::string options_;
  std::size_t options_at_;
};

}  // namespace

std::string block(const std::string& data, Compression compression) {
  const std::string compressed =
      compression == Compression::zstd ? compress_zstd(data) : compress_zlib(data);
  std::string out;
  put(out, static_cast<std::uint32_t>(compressed.size()));
  put(out, static_cast<std::uint32_t>(data.size()));
  return out + compressed;
}

std::string chain(const std::string& pages, std::size_t block_size, Compression compression) {
  std::string blocks;
  std::uint32_t count = 0;
  for (std::size_t at = 0; at < pages.size(); at += block_size, ++count) {
    blocks += block(pages.substr(at, block_size), compression);
  }
  std::string out;
  put(out, count);
  return out + blocks;
}

std::string recompress(const tracedat::Reader& file, const Recompressed& how) {
  File out(how);
  std::string header_info("header_page\0", 12);
  put_text(header_info,
           "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
           "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
           "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
           "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n");
  header_info += std::string("header_event\0", 13);
  put_text(header_info,
           "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n"
           "\tarray       :   32 bits\n\n\tpadding     : type == 29\n\ttime_extend : type == 30\n"
           "\ttime_stamp : type == 31\n\tdata max type_len  == 28\n");
  out.section(OptionId::header_info, header_info);
  out.section(OptionId::ftrace_events, formats(file, true));
  out.section(OptionId::event_formats, formats(file, false));
  std::string text;
  put(text, static_cast<std::uint32_t>(file.kallsyms().size()));
  out.section(OptionId::kallsyms, text + std::string(file.kallsyms()));
  text.clear();
  put_text(text, file.cmdlines());
  out.section(OptionId::cmdlines, text);
  std::string cpus;
  put(cpus, file.cpu_count());
  out.add(option(OptionId::cpucount, cpus) + how.extra_options);
  for (const tracedat::Buffer& buffer : file.buffers()) {
    std::vector<std::string> chains;
    for (const tracedat::CpuData& cpu : buffer.cpus) {
      const std::vector<std::uint8_t> pages = all_pages(file, buffer, cpu);
      chains.push_back(chain(std::string(pages.begin(), pages.end()),
                             how.pages_per_block * buffer.page_size, how.compression));
    }
    out.buffer(buffer, chains);
  }
  return out.finish();
}

std::string cpus_alike(const std::string& chain, std::uint32_t page_size, CpuId cpus,
                       Compression compression) {
  const Recompressed how{compression, 0, ""};
  File out(how);
  tracedat::Buffer buffer;
  buffer.clock = "mono";
  buffer.page_size = page_size;
  for (CpuId cpu = 0; cpu < cpus; ++cpu) buffer.cpus.push_back({cpu, {}, compression, nullptr});
  out.buffer(buffer, std::vector<std::string>(cpus, chain));
  return out.finish();
}

}  // namespace skbtrail::test
