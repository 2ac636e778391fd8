#include "harness/emulator/hooks/access.h"

#include <string>

#include "harness/emulator/runtime/where.h"

namespace capstone_emu::hooks {

void misaligned(const volatile void* address, std::size_t bytes, bool write, std::uint32_t pc) {
  std::string file;
  int line = 0;
  locate_in_source({reinterpret_cast<const void*>(static_cast<std::uintptr_t>(pc - 1))}, file, line);
  const unsigned past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(address) % bytes);
  BlockRunner::current()->fail(
      FailureKind::kUndefinedBehaviour, file.c_str(), line,
      "misaligned access: a " + std::string(write ? "store" : "load") + " of " + std::to_string(bytes) + " bytes at an address " +
          std::to_string(past) + " bytes past a multiple of " + std::to_string(bytes),
      "rows need not be aligned: use vector accesses only where the row length and the offset allow it");
}

}  // namespace capstone_emu::hooks
