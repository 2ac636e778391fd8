#pragma once
// From code addresses to lines of the user's source.
#include <string>
#include <vector>

namespace capstone_emu {

/// The calls that led here, innermost first. From a signal handler: give the interrupted address, and what
/// lies above it (the handler itself) is left out.
std::vector<const void*> call_chain(const void* interrupted = nullptr);

/// file:line of the innermost of these addresses that lies in the user's source, inlined calls resolved;
/// headers of CUDA, of the compiler and of the emulator are passed over.
/// @return false when none does, or nothing can read the program's debug information.
bool locate_in_source(const std::vector<const void*>& chain, std::string& file, int& line);

}  // namespace capstone_emu
