#include "harness/analysis/profile/verified_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <regex>

#include "harness/analysis/profile/ncu.h"
#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/correctness/compare.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/judge/gate_one.h"
#include "harness/judge/gpu.h"
#include "harness/judge/reference_oracle.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/cuda/replayed_kernel.h"

namespace capstone {
namespace {

constexpr int kProbes = 2048;
constexpr auto kPatience = std::chrono::minutes(9);
constexpr std::uint64_t kPoisonSeed = 2;

struct Recorded {
  PreparedCase prepared;
  CapturedGraph run;
  std::optional<CapturedGraph> preparation;
};

// The captured graphs of one call, or the reason why there are none.
Result<tl::expected<Recorded, std::string>> record(const Problem& problem, const Sizes& sizes,
                                                   const Artifact& artifact,
                                                   const fs::path& capture_worker_program,
                                                   const Sandbox& sandbox) {
  WorkerLimits limits;
  limits.memory = std::size_t{16} << 30;
  limits.start = std::chrono::seconds(60);
  ReplayedKernel::Programs programs;
  programs.capture_worker = [&] {
    return Worker::start_runner({capture_worker_program.string(), artifact.program.string()}, sandbox, limits,
                                true);
  };
  ReplayedKernel kernel(programs, {});
  auto refused = [&](const WorkerFailure& failure) {
    return tl::expected<Recorded, std::string>(tl::unexpected(
        kernel.refusal().empty() ? failure.what : "its launch cannot be captured: " + kernel.refusal()));
  };
  auto worker = programs.capture_worker();
  if (!worker) return refused(worker.error());
  CAPSTONE_TRY(const Json question, workspace_arguments(problem, sizes));
  const auto bytes = ask_private_bytes(**worker, problem, question);
  if (!bytes) return refused(bytes.error());
  worker->reset();
  Recorded recorded;
  const CasePlan plan{"profile", sizes, fresh_seed(), Battery::kPlain};
  CAPSTONE_TRY(recorded.prepared, prepare_inputs(problem, plan, bytes->workspace, bytes->prepared));
  const Layout& layout = recorded.prepared.layout;
  poison_image(problem, recorded.prepared, recorded.prepared.image, kPoisonSeed);
  CAPSTONE_TRY(const Json arguments, call_arguments(problem, layout, sizes));
  Json call{{"args", arguments},
            {"workspace", layout.workspace_bytes ? Json(layout.workspace_offset) : Json(nullptr)}};
  if (problem.prepare) {
    const Json prepare{{"args", arguments}, {"prepared", layout.prepared_offset}};
    const auto made = kernel.record("prepare", prepare, layout.bytes);
    if (!made) return refused(made.error());
    recorded.preparation = **made;
    call["prepared"] = layout.prepared_offset;
  }
  const auto made = kernel.record("run", call, layout.bytes);
  if (!made) return refused(made.error());
  recorded.run = **made;
  return tl::expected<Recorded, std::string>(std::move(recorded));
}

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The files that `capstone-replayer --once` reads.
Result<void> lay_out(const fs::path& folder, const Recorded& recorded, const Artifact& artifact) {
  std::error_code code;
  fs::copy_file(artifact.device_code, folder / "code.fatbin", code);
  if (code) return fail("cannot copy the device code: " + code.message(), folder.string());
  const Layout& layout = recorded.prepared.layout;
  Json once{{"arena_bytes", layout.bytes}, {"written", Json::array()}};
  for (const PreparedCase::Output& output : recorded.prepared.outputs) {
    const TensorSlot& slot = layout.tensors[static_cast<std::size_t>(output.slot)];
    once["written"].push_back({{"at", slot.offset}, {"bytes", slot.bytes}});
  }
  CAPSTONE_CHECK(write_file_atomic(folder / "once.json", once.dump()));
  CAPSTONE_CHECK(write_file_atomic(folder / "arena.bin", text_of(recorded.prepared.image)));
  CAPSTONE_CHECK(write_file_atomic(folder / "run.plan",
                                   text_of(graph_packet(recorded.run.document, recorded.run.data))));
  if (recorded.preparation)
    CAPSTONE_CHECK(
        write_file_atomic(folder / "prepare.plan",
                          text_of(graph_packet(recorded.preparation->document, recorded.preparation->data))));
  return {};
}

// Compares the outputs of the launch with the oracle. Empty if they agree.
Result<std::string> probe(const Problem& problem, const Sizes& sizes, const PreparedCase& prepared,
                          const std::string& written, const Oracle& oracle) {
  const auto tensors = oracle_tensors(problem, prepared);
  std::mt19937_64 random(fresh_seed());
  std::size_t at = 0;
  for (const PreparedCase::Output& output : prepared.outputs) {
    const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
    const Parameter& p = problem.signature[static_cast<std::size_t>(output.parameter)];
    if (written.size() < at + slot.bytes) return std::string("the launch produced no outputs");
    std::vector<std::int64_t> indices(kProbes);
    for (auto& index : indices)
      index = std::uniform_int_distribution<std::int64_t>(0, slot.elements - 1)(random);
    std::sort(indices.begin(), indices.end());
    std::vector<double> value(kProbes), scale(kProbes);
    CAPSTONE_CHECK(oracle.evaluate(problem, sizes, tensors, output.parameter, indices, value, scale));
    const auto* bytes = reinterpret_cast<const std::byte*>(written.data()) + at;
    int wrong = 0;
    for (std::size_t i = 0; i < indices.size(); ++i)
      if (!is_right(p.dtype, load_as_double(p.dtype, bytes, indices[i]), value[i], scale[i],
                    problem.tolerance))
        ++wrong;
    if (wrong)
      return fmt::format("{} of {} probed elements of {} are outside the tolerance", wrong, kProbes, p.name);
    at += slot.bytes;
  }
  return std::string();
}

// Replays one captured call without a profiler. Empty if it ran to its end.
Result<std::string> play(const fs::path& replayer, const fs::path& folder) {
  ProcessSpec spec;
  spec.argv = {replayer.string(), "--once", folder.string()};
  spec.timeout = kPatience;
  CAPSTONE_TRY(const ProcessResult result, run_process(spec));
  if (result.end == ProcessResult::End::kInterrupted)
    return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  return result.ok() ? std::string() : "it does not run: " + last_line(to_utf8(result.err));
}

std::string written_in(const fs::path& folder) {
  return read_file(folder / "written.bin", std::size_t{1} << 36).value_or("");
}

std::string version_of(const fs::path& ncu) {
  ProcessSpec spec;
  spec.argv = {ncu.string(), "--version"};
  spec.timeout = std::chrono::seconds(30);
  const auto said = run_process(spec);
  std::smatch match;
  if (said && std::regex_search(said->out, match, std::regex("Version ([0-9.]+)"))) return match[1];
  return "unknown version";
}

// Runs ncu on the replayer; again without those metrics that this ncu does not know.
Result<ProcessResult> run_ncu(const fs::path& ncu, const fs::path& replayer, const fs::path& folder) {
  std::vector<std::string> metrics = ncu_metrics();
  for (;;) {
    ProcessSpec spec;
    spec.argv = {ncu.string()};
    const auto arguments = ncu_arguments(metrics);
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.argv.insert(spec.argv.end(), {replayer.string(), "--once", folder.string()});
    spec.env = {{"TMPDIR", folder.string()}};
    spec.timeout = kPatience;
    spec.max_output = std::size_t{64} << 20;
    CAPSTONE_TRY(ProcessResult result, run_process(spec));
    if (result.end == ProcessResult::End::kInterrupted)
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
    const auto unknown = unknown_metrics(result.out + "\n" + result.err, metrics);
    if (unknown.empty() || !ncu_table(result.out).empty()) return result;
    std::erase_if(metrics, [&](const std::string& metric) {
      return std::find(unknown.begin(), unknown.end(), metric) != unknown.end();
    });
  }
}

}  // namespace

bool oracle_answers_at(const Problem& problem, const Sizes& sizes) {
  return !problem.oracle_is_reference ||
         std::find(problem.check.begin(), problem.check.end(), sizes) != problem.check.end();
}

Result<LaunchUnderNcu> launch_under_ncu(const Problem& problem, const fs::path& source, const Sizes& sizes,
                                        const GpuIdentity& gpu, const Resources& resources,
                                        const Narration& say) {
  const auto ncu = find_ncu(resources);
  if (!ncu)
    return LaunchUnderNcu{
        {}, {}, "Nsight Compute (ncu) is not installed: it comes with the CUDA Toolkit", {}};
  CAPSTONE_TRY(const CudaToolkit toolkit, find_toolkit(resources));
  Sandbox sandbox = Sandbox::detect(resources);
  CAPSTONE_TRY(const auto own, own_cuda_programs({"capstone-capture-worker", "capstone-replayer"}, gpu.arch(),
                                                 resources, say));
  say("building with nvcc");
  CAPSTONE_TRY(const Artifact artifact,
               build_cuda({&problem, source, &resources, &sandbox, "kernel", 900}, gpu.arch(), {}));
  if (!artifact.result.ok)
    return fail("it does not compile: " + artifact.result.first_error->text,
                fmt::format("{}:{}", artifact.result.first_error->file, artifact.result.first_error->line),
                "fix the compiler's first error", ExitCode::kGateOneFailed);
  CAPSTONE_TRY(const Oracle oracle, load_oracle(problem, resources));
  CAPSTONE_TRY(const FileLock lock, take_gpu(gpu, say));
  sandbox.allow_reading(toolkit.root);
  say("capturing the launch");
  CAPSTONE_TRY(const auto recorded, record(problem, sizes, artifact, own[0], sandbox));
  if (!recorded) return LaunchUnderNcu{{}, {}, recorded.error(), {}};
  const ScratchFolder scratch(resources.cache / "profile");
  CAPSTONE_CHECK(make_folders(scratch.path()));
  LaunchUnderNcu done;
  const auto wrong_at = [&](const Sizes& at, const std::string& wrong) {
    return fail(fmt::format("the launch at {} gave wrong results: {}", to_string(at), wrong), source.string(),
                "the counters of a wrong kernel mean nothing; `capstone measure` shows what is wrong",
                ExitCode::kGateOneFailed);
  };
  const bool too_large = !oracle_answers_at(problem, sizes);
  if (too_large) {
    const Sizes& checked = problem.check.front();
    say("checking the launch at " + to_string(checked));
    CAPSTONE_TRY(const auto small, record(problem, checked, artifact, own[0], sandbox));
    if (!small) return LaunchUnderNcu{{}, {}, small.error(), {}};
    const fs::path apart = scratch.path() / "checked";
    CAPSTONE_CHECK(make_folders(apart));
    CAPSTONE_CHECK(lay_out(apart, *small, artifact));
    CAPSTONE_TRY(const std::string wrong, play(own[1], apart));
    if (!wrong.empty()) return wrong_at(checked, wrong);
    CAPSTONE_TRY(const std::string outside,
                 probe(problem, checked, small->prepared, written_in(apart), oracle));
    if (!outside.empty()) return wrong_at(checked, outside);
    done.checked_at = to_string(checked);
  }
  CAPSTONE_CHECK(lay_out(scratch.path(), *recorded, artifact));
  say("profiling with ncu");
  CAPSTONE_TRY(const ProcessResult result, run_ncu(*ncu, own[1], scratch.path()));
  done.csv = ncu_table(result.out);
  if (done.csv.empty()) return LaunchUnderNcu{{}, {}, ncu_refusal(result.out + "\n" + result.err), {}};
  done.ncu = version_of(*ncu);
  if (!too_large) {
    CAPSTONE_TRY(const std::string wrong,
                 probe(problem, sizes, recorded->prepared, written_in(scratch.path()), oracle));
    if (!wrong.empty()) return wrong_at(sizes, wrong);
  }
  return done;
}

}  // namespace capstone
