#include "cli/arguments.h"
#include "cli/verb.h"
namespace skbtrail::cli {
int list(std::span<const std::string>) {
  return 0;
}
}  // namespace skbtrail::cli
