// bench_large_head OUTPUT: a capture without events, of a machine with 2,000 events and 200,000
// kernel symbols.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include "base/fd.h"
#include "tracedat/writer.h"

namespace {

std::string format_text(int id) {
  std::string text = fmt::format(
      "name: event_{}\nID: {}\nformat:\n"
      "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
      "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
      "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
      "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n",
      id, id);
  for (int field = 0; field < 6; ++field) {
    text += fmt::format("\tfield:unsigned long value_{};\toffset:{};\tsize:8;\tsigned:0;\n", field,
                        8 + 8 * field);
  }
  return text + "\nprint fmt: \"value_0=%lx value_1=%lx\", REC->value_0, REC->value_1\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  skbtrail::tracedat::CaptureText text;
  text.cpu_count = 1;
  text.clock = "mono";
  text.trace_clock = "[mono]";
  for (int system = 0; system < 100; ++system) {
    text.systems.push_back({fmt::format("system_{}", system), {}});
    for (int event = 0; event < 20; ++event) {
      text.systems.back().formats.push_back(format_text(100 + system * 20 + event));
    }
  }
  for (std::uint64_t symbol = 0; symbol < 200000; ++symbol) {
    text.kallsyms += fmt::format("{:016x} t a_function_of_the_kernel_{}\n",
                                 0xffffffff81000000 + symbol * 96, symbol);
  }
  const auto layout = skbtrail::tracedat::lay_out(text, {}, skbtrail::tracedat::FileVersion::v7);
  const skbtrail::Fd out(open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!layout || !out) return 1;
  const ssize_t written = write(out.get(), layout->head.data(), layout->head.size());
  return written == static_cast<ssize_t>(layout->head.size()) ? 0 : 1;
}
