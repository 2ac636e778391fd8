#pragma once
// From code addresses to lines of the user's source.
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace capstone_emu::hooks {

struct Place {
  std::string file;  ///< without its folder; empty: unknown
  int line = 0;
  std::string text() const { return file.empty() ? "" : file + ":" + std::to_string(line); }
};

/// The places of instructions, each the innermost that is not in a header of the emulator, of CUDA or of the
/// system. Reads the program's own line tables through addr2line, once for all addresses.
std::unordered_map<std::uint32_t, Place> places_of(std::vector<std::uint32_t> addresses);

/// Standard output of a program that is found in /usr/bin or /usr/local/bin; `{}` in an argument stands for
/// this program's own path. Empty when it does not run.
std::string output_of(const char* tool, const std::vector<std::string>& arguments,
                      const std::string& input = {});

}  // namespace capstone_emu::hooks
