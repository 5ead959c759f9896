// Small readings of the texts in a trace.dat.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skbtrail/units.h"

namespace skbtrail::tracedat {

// Texts of options end with a NUL, or where their bytes end.
std::string_view without_nul(std::string_view text);

// "[mono]" of "local global [mono] boot", or of the "[mono]" that ends a v6 header; "" without one.
std::string selected_clock(std::string_view text);

// Whether one of the lines is this.
bool has_line(std::string_view text, std::string_view line);

// Where recorders collect the pages of a CPU until FILE is finished: FILE.cpuN, for a named buffer
// FILE.BUFFER.cpuN (get_temp_file(), tracecmd/trace-record.c of trace-cmd 3.1.6).
std::string spool_suffix(std::string_view buffer, CpuId cpu);

// The id in an event's format text ("ID: 1234").
std::optional<std::uint16_t> event_id(std::string_view format);

// The size of a page according to header_page: "field: char data; offset:16; size:4080;" says where
// the data ends, and there the page does. 0 when the text does not say.
std::uint32_t page_size_of(std::string_view header_page);

}  // namespace skbtrail::tracedat
