#pragma once
// Names of functions, from this program's own symbol table.
#include <cstdint>
#include <string>

namespace capstone_emu::hooks {

/// The mangled name of the function that holds an instruction; empty where the program has no symbol for it.
std::string function_at(std::uint32_t address);

/// Is this function the emulator's or the standard library's, or one inside another (a lambda)? No kernel is.
bool belongs_to_a_launch(const std::string& symbol);

}  // namespace capstone_emu::hooks
