#include "harness/workflows/explain_kernel.h"

#include "harness/analysis/explain/explain.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/emulator/rewriter/cxx_tokens.h"
#include "harness/workflows/chosen_kernel.h"
#include "harness/workflows/output_path.h"
#include "harness/workflows/results.h"
#include "harness/workflows/sizes.h"
#include "templates/explanation_page.h"

namespace capstone::workflows {
namespace {

// Sizes that the emulator's instruments can hold.
Result<Sizes> observable_sizes(const Problem& problem, const std::string& text) {
  CAPSTONE_TRY(const Sizes sizes, parse_sizes(problem, problem.emulate, text));
  constexpr double kMostFlops = 2e9, kMostBytes = 1e8;  // about a minute; each byte has eight bytes of shadow
  CAPSTONE_TRY(const Cost cost, cost_at(problem, sizes));
  if (cost.flops > kMostFlops || cost.bytes > kMostBytes)
    return fail("too large to be observed on the CPU: " + to_string(sizes), problem.id,
                "counts per request do not depend on the size: choose a smaller one");
  return sizes;
}

// A file that is written at the end: checked before the work begins.
Result<fs::path> early_output(const Workspace& workspace, const std::string& name, Output kind) {
  if (name.empty()) return fs::path();
  CAPSTONE_TRY(const fs::path file, output_path(workspace, name, kind));
  CAPSTONE_CHECK(expect_writable(file));
  return file;
}

}  // namespace

Result<Explanation> explain_kernel(const ExplainKernelRequest& request, const Workspace& workspace,
                                   const ProgressSink& progress) {
  CAPSTONE_TRY(const ChosenKernel kernel,
               choose_kernel(workspace, request.what, request.problem, "capstone explain {0} --problem {1}"));
  ExplainRequest counted{&kernel.problem, kernel.source, {}, {}};
  CAPSTONE_TRY(counted.sizes, observable_sizes(kernel.problem, request.size));
  counted.at_measured = request.size.empty();
  if (!request.device.empty()) {
    CAPSTONE_TRY(counted.device, find_device_like(request.device));
  }
  CAPSTONE_TRY(const std::string digest, sha256_file(kernel.source));
  CAPSTONE_TRY(const fs::path html, early_output(workspace, request.html, Output::kPage));
  CAPSTONE_TRY(Explanation e, explain(counted, workspace.resources, narration_to(progress)));
  e.candidate = kernel.candidate;
  e.source_sha256 = digest;
  e.source = kernel.shown();
  if (kernel.project)
    CAPSTONE_CHECK(keep_findings(workspace, kernel, digest, [&](const std::string& version) {
      e.version = version;
      return FoundRecord{"explanation", Json(e)};
    }));
  if (!html.empty()) {
    CAPSTONE_TRY(const std::string page, explanation_page(e, kernel.source, workspace.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(html, page));
  }
  return e;
}

bool is_program(const fs::path& file) {
  constexpr std::size_t kMaxSource = 16u << 20;  // [B]
  const auto text = file.extension() == ".cu" ? read_file(file, kMaxSource) : Result<std::string>();
  if (!text) return false;
  int depth = 0;
  std::string_view before;
  for (const CxxToken& token : cxx_tokens(*text)) {
    if (token.kind == CxxTokenKind::kComment || token.kind == CxxTokenKind::kDirective) continue;
    if (token.text == "{") ++depth;
    if (token.text == "}") --depth;
    if (depth == 0 && before == "main" && token.text == "(") return true;
    before = token.text;
  }
  return false;
}

Result<Explanation> explain_program(ExplainProgramRequest request, const Workspace& workspace,
                                    const ProgressSink& progress,
                                    const std::function<void(const std::string&)>& say) {
  CAPSTONE_TRY(const std::string digest, sha256_file(request.program.source));
  CAPSTONE_TRY(const fs::path html, early_output(workspace, request.html, Output::kPage));
  narration_to(progress)("building with every access observed, and running");
  request.program.observe = true;
  CAPSTONE_TRY(const ProgramRun run, run_emulated_program(request.program, workspace.resources));
  if (!run.build.result.ok && run.build.not_judgeable.empty()) say(run.build.result.log);
  CAPSTONE_CHECK(expect_built(run));
  const bool mistaken = names_a_mistake(run.process.err);
  if (mistaken || run.process.end != ProcessResult::End::kExited) say(run.process.err);
  CAPSTONE_CHECK(expect_ended(run, request.program));
  if (mistaken || run.report.is_null())
    return fail("the program cannot be explained: it " +
                    std::string(mistaken ? "makes the mistake above"
                                         : "ended without returning from main() or calling exit()"),
                request.program.source.string(), "first make `capstone run --check all` find nothing",
                ExitCode::kGateOneFailed);
  CAPSTONE_TRY(Explanation e, interpret_program(run.report, request.program.source));
  e.source = request.program.source.filename().string();
  e.source_sha256 = digest;
  if (!html.empty()) {
    CAPSTONE_TRY(const std::string page,
                 explanation_page(e, request.program.source, workspace.resources.templates()));
    CAPSTONE_CHECK(write_file_atomic(html, page));
  }
  return e;
}

Result<Profile> profile_kernel(const ProfileKernelRequest& request, const Workspace& workspace,
                               const ProgressSink& progress) {
  CAPSTONE_TRY(const ChosenKernel kernel,
               choose_kernel(workspace, request.what, request.problem, "capstone profile {0} --problem {1}"));
  ProfileRequest asked{&kernel.problem, kernel.source, {}, request.arch, std::nullopt, request.use_ncu};
  CAPSTONE_TRY(asked.sizes, parse_sizes(kernel.problem, kernel.problem.measure, request.size));
  if (!request.device.empty()) {
    CAPSTONE_TRY(asked.device, find_device_like(request.device));
  }
  CAPSTONE_TRY(const std::string digest, sha256_file(kernel.source));
  CAPSTONE_TRY(const fs::path csv, early_output(workspace, request.csv, Output::kNcuTable));
  CAPSTONE_TRY(Profile p, profile(asked, workspace.resources, narration_to(progress)));
  p.candidate = kernel.candidate;
  p.source_sha256 = digest;
  p.source = kernel.shown();
  if (kernel.project)
    CAPSTONE_CHECK(keep_findings(workspace, kernel, digest, [&](const std::string& version) {
      p.version = version;
      return FoundRecord{"profile", Json(p)};
    }));
  if (csv.empty()) return p;
  if (p.csv.empty())
    return fail("ncu gave no table to write: " + p.because, {},
                "run it on a machine with a GPU and Nsight Compute", ExitCode::kEnvironment);
  CAPSTONE_CHECK(write_file_atomic(csv, p.csv));
  return p;
}

}  // namespace capstone::workflows
