// Names of kernel addresses, from the text of /proc/kallsyms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skbtrail {

class Symbols {
 public:
  // `kallsyms` must outlive this. It is parsed at the first name() and not before.
  explicit Symbols(std::string_view kallsyms = {}) : text_(kallsyms) {}

  // "tcp_v4_rcv+0x1f", or "0xffffffff81000000" when no symbol lies at or below the address.
  std::string name(std::uint64_t address);

 private:
  struct Symbol {
    std::uint64_t address;
    std::string_view name;  // and what stands behind it: "\t[module]"
  };
  void parse();

  std::string_view text_;
  bool parsed_ = false;
  std::vector<Symbol> symbols_;  // by address
};

}  // namespace skbtrail
