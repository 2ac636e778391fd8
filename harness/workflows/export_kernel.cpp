#include "harness/workflows/export_kernel.h"

#include <functional>
#include <random>
#include <set>

#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/correctness/cases.h"
#include "harness/judge/gpu.h"
#include "harness/judge/python_candidate.h"
#include "harness/workflows/chosen_kernel.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/results.h"

namespace capstone::workflows {
namespace {

constexpr int kDrawn = 2000;  // sets of sizes: so many that each power of two in a range is among them
constexpr int kPlans = 20;    // the judge's own draws that have measured extents

Result<std::string> arch_of(const std::string& wanted, const Resources& resources) {
  if (wanted.empty()) {
    auto gpu = find_gpu(resources);
    return gpu ? gpu->arch() : "sm_90a";
  }
  const std::string digits = wanted.starts_with("sm_") ? wanted.substr(3) : std::string();
  if (digits.size() < 2 || digits.find_first_not_of("0123456789a") != std::string::npos)
    return fail("no such architecture: " + wanted, {}, "sm_80, sm_89, sm_90a …", ExitCode::kUsage);
  return wanted;
}

}  // namespace

Result<std::vector<Sizes>> sizes_to_export(const Problem& problem) {
  std::vector<Sizes> sets{problem.measure};
  sets.insert(sets.end(), problem.check.begin(), problem.check.end());
  for (const auto& [name, sizes] : problem.published) sets.push_back(sizes);
  std::mt19937_64 random;
  for (int plan = 0; plan < kPlans; ++plan)
    for (const DrawLimits& limits : {DrawLimits{}, kDrawLimitsOnGpu}) {
      CAPSTONE_TRY(const auto plans, plan_cases(problem, kDrawn / kPlans / 2, limits, std::ref(random)));
      for (const CasePlan& drawn : plans) sets.push_back(drawn.sizes);
    }
  std::set<Sizes> known;
  std::erase_if(sets, [&](const Sizes& sizes) { return !known.insert(sizes).second; });
  return sets;
}

Result<ExportedFile> export_kernel(const ExportKernelRequest& request, const Workspace& workspace,
                                   const ProgressSink& progress) {
  const Resources& resources = workspace.resources;
  const fs::path source = workspace.cwd / request.file;
  std::error_code code;
  if (source.extension() != ".py" || !fs::is_regular_file(source, code))
    return fail("no such Python file", source.string(), "give a .py with class ModelNew", ExitCode::kUsage);
  CAPSTONE_TRY(const Problem problem, problem_of_file(workspace, request.problem));
  CAPSTONE_TRY(const fs::path out, output_path(workspace, request.out, Output::kExportedKernel));
  CAPSTONE_CHECK(expect_writable(out));
  CAPSTONE_TRY(const std::string arch, arch_of(request.arch, resources));
  CAPSTONE_TRY(const CudaToolkit toolkit, find_toolkit(resources));
  CAPSTONE_TRY(const Python python, find_python(request.python, resources, request.python_path));
  CAPSTONE_TRY(const std::vector<Sizes> sets, sizes_to_export(problem));
  const ScratchFolder builds(resources.cache / "python" / "export");
  const PythonWork work{&problem, &resources, &python, {}, source, builds.path(), false, {}};
  narration_to(progress)("following forward(), and compiling its kernels");
  CAPSTONE_TRY(ExportedKernel kernel, export_triton(work, sets, arch, toolkit, Sandbox::detect(resources)));
  CAPSTONE_CHECK(write_file_atomic(out, kernel.source));
  return ExportedFile{out, arch, std::move(kernel), sets.size()};
}

}  // namespace capstone::workflows
