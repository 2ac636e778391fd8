#pragma once
// Why a kernel is as fast as it is: counters of one verified launch by Nsight Compute where there is one, else what compiler, cost model and
// emulator say.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "harness/judge/judge.h"
#include "harness/model/explanation.h"
#include "harness/timing/device.h"
#include "harness/analysis/profile/record.h"

namespace capstone {

struct ProfileRequest {
  const Problem* problem = nullptr;
  std::filesystem::path source;
  Sizes sizes;                          ///< of the profiled launch
  std::string arch;                     ///< of the machine code; empty: the GPU's here, else sm_90a
  std::optional<DevicePeaks> device;    ///< of the cost model's floor; empty: the GPU's here, else an H100
  bool ncu = true;                      ///< false: as on a machine without it
};

/// `candidate`, `version`, `source` and `source_sha256` of the result are the caller's to fill in.
/// @error the kernel does not build, or what it computes is wrong: exit code 1.
Result<Profile> profile(const ProfileRequest& request, const Resources& resources, const Narration& say);

/// Puts what another source knows of the kernels into `kernels` where these do not know it. Names agree whole, else without template arguments and
/// namespaces where just one does.
/// @param rest  what only the other source has follows; it does in any case where one here has no namesake there: it may be any of them
/// @return  names of those that have none
std::vector<std::string> complete(std::vector<KernelProfile>& kernels, const std::vector<KernelProfile>& other, bool rest = false);

/// What an explanation counts, as a profile.
std::vector<KernelProfile> counts_of(const Explanation& explanation);

/// One question about a kernel, answered in words with numbers; "n/a" and why, where nobody knows.
struct Answer {
  std::string question, text;
  bool trouble = false;                 ///< worth looking at first
};
/// @param all  also the questions that nobody can answer
std::vector<Answer> answers(const KernelProfile& kernel, bool all = true);

}  // namespace capstone
