// The tracer function_graph on chosen functions: an entry and an exit event per call.
//
// Kernels from 6.11 on have it in every instance. Earlier ones have it in the top buffer only,
// which belongs to everybody: it is taken only when nobody uses it, and all its files that are
// written are put back (graph_trace.allow_instances in kernel/trace/trace_functions_graph.c).
//
// Functions are chosen by set_ftrace_filter, which every instance has of its own.
// set_graph_function, max_graph_depth and the sysctl kernel.ftrace_enabled are the whole kernel's
// and are left alone.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "skbtrail/result.h"
#include "tracefs/saved.h"

namespace skbtrail::tracefs {

// Ok when the kernel has the tracer and can trace all of these functions.
Result<void> check_graph(const std::filesystem::path& tracing_folder,
                         std::span<const std::string> functions);

struct GraphOptions {
  std::vector<std::string> functions;
  std::string clock;            // the instance has it already
  std::uint64_t buffer_kb = 0;  // per CPU
};

enum class GraphPlace { instance, top_buffer };

// Sets the tracer in the instance, or in the top buffer with tracing off there. What is changed
// outside of the instance goes into `saved`.
Result<GraphPlace> set_graph(const std::filesystem::path& tracing_folder,
                             const std::filesystem::path& instance, const GraphOptions& options,
                             Saved& saved);

// What others have set and what therefore is missing in the graph, a line each.
std::vector<std::string> limits_of_graph(
    const std::filesystem::path& tracing_folder,
    const std::filesystem::path& ftrace_enabled = "/proc/sys/kernel/ftrace_enabled");

}  // namespace skbtrail::tracefs
