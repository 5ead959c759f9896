// Names of kernel addresses, from the text of /proc/kallsyms. Any thread may ask: who follows
// packets and who prints them do so at the same time.
#pragma once

#include <boost/unordered/unordered_flat_map.hpp>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skbtrail {

class Symbols {
 public:
  // `kallsyms` must outlive this. It is read at the first name() and not before.
  explicit Symbols(std::string_view kallsyms = {}) : text_(kallsyms) {}

  // "tcp_v4_rcv+0x1f", or "0xffffffff81000000" when no symbol lies at or below the address.
  std::string name(std::uint64_t address);

 private:
  // An address as it is printed, the first eight digits and the last: in the order of addresses,
  // and nothing needs to be converted.
  using Digits = std::pair<std::uint64_t, std::uint64_t>;
  // Lines that follow each other. A kernel has 200,000 symbols and a capture asks for a dozen: to
  // know where to look for one takes less than a table of all of them.
  struct Part {
    std::string_view text;
    Digits lowest{~std::uint64_t{0}, ~std::uint64_t{0}};
    Digits highest{0, 0};
  };
  static Digits digits_at(const char* text);
  static Digits digits_of(std::uint64_t address);
  void divide();
  std::string look_up(std::uint64_t address) const;

  std::string_view text_;
  std::mutex asked_;  // for what follows
  bool divided_ = false;
  std::vector<Part> parts_;
  boost::unordered_flat_map<std::uint64_t, std::string> known_;  // names that were asked for
};

}  // namespace skbtrail
