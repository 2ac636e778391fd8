#include "hooks/symbols.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <string_view>

namespace capstone_emu::hooks {
namespace {

struct Function {
  std::uint64_t bytes;
  const char* name;
};
using Functions = std::map<std::uint64_t, Function>;  // by their first address

// The file stays mapped: names point into it.
Functions functions_of(const char* path) {
  Functions functions;
  const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
  struct stat status {};
  if (fd < 0 || ::fstat(fd, &status) != 0) return functions;
  void* mapped = ::mmap(nullptr, static_cast<std::size_t>(status.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
  ::close(fd);
  if (mapped == MAP_FAILED) return functions;
  const char* file = static_cast<const char*>(mapped);
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(file);
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(file + header->e_shoff);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* symbols = reinterpret_cast<const Elf64_Sym*>(file + sections[i].sh_offset);
    const char* names = file + sections[sections[i].sh_link].sh_offset;
    for (std::size_t s = 0; s < sections[i].sh_size / sizeof *symbols; ++s)
      if (ELF64_ST_TYPE(symbols[s].st_info) == STT_FUNC && symbols[s].st_size)
        functions[symbols[s].st_value] = {symbols[s].st_size, names + symbols[s].st_name};
  }
  return functions;
}

}  // namespace

std::string function_at(std::uint32_t address) {
  static const Functions& functions = *new Functions(functions_of("/proc/self/exe"));
  const auto after = functions.upper_bound(address);
  if (after == functions.begin()) return {};
  const auto& [begin, function] = *std::prev(after);
  return address < begin + function.bytes ? function.name : std::string();
}

bool belongs_to_a_launch(const std::string& symbol) {
  for (std::string_view beginning : {"_ZZ", "_ZN12capstone_emu", "_ZSt", "_ZNSt", "_ZNKSt"})
    if (symbol.starts_with(beginning)) return true;
  return false;
}

}  // namespace capstone_emu::hooks
