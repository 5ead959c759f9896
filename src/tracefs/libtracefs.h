// The functions of libtracefs that we call. <tracefs/tracefs.h> of 1.6 is no C++: its inline
// functions convert int to enum, and it has no extern "C" around its declarations.
#pragma once

extern "C" {
struct tracefs_instance;
tracefs_instance* tracefs_instance_create(const char* name);
int tracefs_instance_destroy(tracefs_instance* instance);
void tracefs_instance_free(tracefs_instance* instance);
const char* tracefs_instance_get_name(tracefs_instance* instance);
bool tracefs_instance_exists(const char* name);
bool tracefs_file_exists(tracefs_instance* instance, const char* name);
char* tracefs_error_last(tracefs_instance* instance);
const char* tracefs_tracing_dir(void);
}
