#pragma once
// Explains a kernel's speed: with counters of one verified launch from Nsight Compute if it is available,
// else with data from the compiler, the cost model and the emulator.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/analysis/profile/record.h"
#include "harness/judge/judge.h"
#include "harness/model/explanation.h"
#include "harness/timing/device.h"

namespace capstone {

struct ProfileRequest {
  const Problem* problem = nullptr;
  std::filesystem::path source;
  Sizes sizes;                        ///< of the profiled launch
  std::string arch;                   ///< of the machine code; empty: this machine's GPU, else sm_90a
  std::optional<DevicePeaks> device;  ///< for the cost model's lower bound; empty: this machine's GPU, else
                                      ///< an H100
  bool ncu = true;                    ///< false: behave as on a machine without ncu
};

/// The caller fills in `candidate`, `version`, `source` and `source_sha256` of the result.
/// @error the kernel does not build, or its results are wrong: exit code 1.
Result<Profile> profile(const ProfileRequest& request, const Resources& resources, const Narration& say);

/// Adds to `kernels` what another source knows and they do not. Two names match if they are equal, or, if
/// there is only one candidate, if they are equal without template arguments and namespaces.
/// @param rest  append the kernels that only the other source has. They are always appended if a kernel here
///   has no match, because each of them may be that kernel.
/// @return  names of the kernels that have no match
std::vector<std::string> complete(std::vector<KernelProfile>& kernels,
                                  const std::vector<KernelProfile>& other, bool rest = false);

/// An explanation's counts as a profile.
std::vector<KernelProfile> counts_of(const Explanation& explanation);

/// One question about a kernel, answered in words with numbers; or "n/a" and the reason.
struct Answer {
  std::string question, text;
  bool trouble = false;  ///< worth a look first
};
/// @param all  include questions that have no answer
std::vector<Answer> answers(const KernelProfile& kernel, bool all = true);

}  // namespace capstone
