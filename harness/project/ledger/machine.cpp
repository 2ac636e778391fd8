#include "harness/project/ledger/machine.h"

#include "harness/base/files.h"
#include "harness/base/random_id.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

bool is_id(std::string_view text) {
  return text.size() == 16 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

Result<std::string> machine_id(const fs::path& state_folder) {
  const fs::path path = state_folder / "machine-id";
  auto kept = [&]() -> std::string {
    auto text = read_file(path, 4096);
    return text && is_id(trim(*text)) ? std::string(trim(*text)) : std::string();
  };
  if (std::string id = kept(); !id.empty()) return id;
  CAPSTONE_CHECK(make_folders(state_folder));
  CAPSTONE_TRY(FileLock lock, FileLock::acquire(state_folder / "machine-id.lock", true));
  if (std::string id = kept(); !id.empty()) return id;  // another process created it first
  CAPSTONE_TRY(std::string id, random_id(8));
  CAPSTONE_CHECK(write_file_atomic(path, id + "\n"));
  return id;
}

}  // namespace capstone
