// One tracefs instance of our own: created, programmed, switched on and off, and gone at the end.
// Outside the instance the size of the kernel's table of task names is touched, and the top buffer
// where the kernel has function_graph only there (graph.h); both are put back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "skbtrail/result.h"
#include "tracefs/buffer.h"
#include "tracefs/libtracefs.h"
#include "tracefs/plan.h"
#include "tracefs/saved.h"

namespace skbtrail::tracefs {

struct SessionOptions {
  std::string clock = "mono";
  std::uint64_t buffer_kb = 0;      // per CPU
  std::uint64_t sub_buffer_kb = 0;  // what one read returns; 0 = a page
  std::vector<std::string> graph;   // functions to trace with function_graph
};

// Removes the instances that recorders left which are gone (killed with SIGKILL) and that nobody
// has open. A line for each.
std::vector<std::string> remove_left_behind(const std::filesystem::path& tracing_folder);

// Leaving the scope removes the instance. All descriptors of its files must be closed before: the
// kernel calls it busy otherwise.
class Session {
 public:
  // An instance "skbtrail-PID" with tracing off and no event enabled.
  static Result<Session> create(const std::filesystem::path& tracing_folder,
                                const SessionOptions& options);

  // Sets the filters and enables the events; nothing is recorded before start(). An event that only
  // a pattern named and that has not what its filter asks for is taken out of the plan: see
  // Plan::left_out.
  Result<void> program(Plan& plan);
  Result<void> start();
  // When it returns, nobody writes events any more, but where the kernel has no membarrier().
  Result<void> stop();

  // Of whom tracing was switched off by others since start(): the folders of the buffers.
  std::vector<std::filesystem::path> switched_off() const;
  // Puts back what is changed outside of the instance, with its buffers no longer read; what could
  // not be, a line each. Without a call it happens at the end.
  std::vector<std::string> put_back();
  // Removes the instance, with none of its files open; a line when that cannot be done. Without a
  // call it happens at the end.
  std::vector<std::string> remove();

  // File names are relative to the instance.
  std::filesystem::path path(const std::string& file) const;
  Result<std::string> read(const std::string& file) const;
  bool has(const std::string& file) const;

  const std::filesystem::path& tracing_folder() const { return root_; }
  // The instance's buffer, then the top one when function_graph has to be there.
  const std::vector<Buffer>& buffers() const { return buffers_; }

 private:
  struct Remove {
    void operator()(tracefs_instance* instance) const;
  };
  using Instance = std::unique_ptr<tracefs_instance, Remove>;

  Session(std::filesystem::path root, Instance instance);
  Result<void> setup(const SessionOptions& options);
  Result<void> set_sub_buffer_size(std::uint64_t kb);
  Result<void> set_buffer_size(std::uint64_t kb);
  Result<void> set_clock(const std::string& clock);
  Result<void> set_filter(const PlannedEvent& event);
  Result<void> set_graph(const SessionOptions& options);
  Result<void> switch_to(const std::string& state) const;
  void enlarge_task_names();
  bool others_record() const;
  Result<void> write(const std::string& file, const std::string& text) const;

  std::filesystem::path root_;
  Instance instance_;
  Fd in_use_;  // one of the instance's files: nobody can remove it meanwhile
  std::vector<Buffer> buffers_;
  Saved task_names_;  // the size of their table
  Saved saved_;       // goes first: it may hold files of the instance
};

}  // namespace skbtrail::tracefs
