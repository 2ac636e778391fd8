#include "harness/base/resources.h"

#include "harness/base/version.h"

namespace capstone {
namespace fs = std::filesystem;

Result<Resources> locate_resources(const fs::path& executable, const fs::path& cache,
                                   const std::string& path_variable) {
  fs::path root = executable.parent_path().parent_path();
  Resources found{root / "share" / "capstone",
                  root / "libexec" / "capstone",
                  fs::absolute(cache),  // compilers run in folders of their own
                  path_variable,
                  kToolVersion,
                  false,
                  {},
                  {},
                  {}};
  std::error_code ignored;
  const fs::path harness = found.share / "harness";
  if (!fs::is_directory(harness, ignored))
    return fail(
        "files of capstone are missing", harness.string(),
        "run the program where it was built or unpacked: bin/, libexec/ and share/ must stay together",
        ExitCode::kEnvironment);
  return found;
}

}  // namespace capstone
