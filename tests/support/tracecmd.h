// The functions of libtracecmd that tests use as an oracle. <trace-cmd.h> includes <tracefs.h>,
// which is no C++ (see tracefs/libtracefs.h), and has no extern "C" around its declarations.
#pragma once

#include <event-parse.h>
#include <sched.h>

#include <memory>

extern "C" {
struct tracecmd_input;
tracecmd_input* tracecmd_open(const char* file, int flags);
void tracecmd_close(tracecmd_input* handle);
tep_handle* tracecmd_get_tep(tracecmd_input* handle);
int tracecmd_iterate_events(tracecmd_input* handle, cpu_set_t* cpus, int cpu_size,
                            int (*callback)(tracecmd_input* handle, tep_record* record, int cpu,
                                            void* context),
                            void* context);
int tracecmd_buffer_instances(tracecmd_input* handle);
const char* tracecmd_buffer_instance_name(tracecmd_input* handle, int index);
tracecmd_input* tracecmd_buffer_instance_handle(tracecmd_input* handle, int index);
}

namespace skbtrail::test {

struct CloseTracecmd {
  void operator()(tracecmd_input* input) const { tracecmd_close(input); }
};
using TracecmdInput = std::unique_ptr<tracecmd_input, CloseTracecmd>;

}  // namespace skbtrail::test
