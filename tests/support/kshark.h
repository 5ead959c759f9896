// What libkshark, KernelShark's library, makes of a capture. Only where the library is installed.
#pragma once

#include "support/oracle.h"

namespace skbtrail::test {

// Number, order, CPU, time, id and task of the events of the top buffer. KernelShark takes only
// files whose name ends in .dat.
Comparison compare_with_kshark(const std::filesystem::path& capture);

}  // namespace skbtrail::test
