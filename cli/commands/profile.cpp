// `capstone profile`: why a kernel is as fast as it is, in words with numbers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/context.h"
#include "cli/show_explanation.h"
#include "harness/base/text.h"
#include "harness/model/sizes_text.h"
#include "harness/workflows/explain_kernel.h"

namespace capstone::cli {
namespace {

std::string headline(const Profile& p, const Terminal& t) {
  std::string text =
      fmt::format("{} of {} at {}", t.paint(Tone::kBold, p.source), p.problem_id, sizes_text(p.sizes));
  if (!p.ncu.empty())
    text += fmt::format(
        "\non {}, driver {}, Nsight Compute {}; {}", p.device, p.driver, p.ncu,
        p.checked_at.empty()
            ? "the profiled launch's results agree with the oracle"
            : fmt::format(
                  "its results agree with reference.py at {}; those of the profiled launch were not compared",
                  p.checked_at));
  else
    text += "\n" + t.paint(Tone::kWarn, "no counters of a GPU: " + p.because);
  for (const std::string& missing : p.missing) text += "\n" + t.paint(Tone::kWarn, missing);
  if (!p.counted_at.empty())
    text += fmt::format("\ncounts of accesses: by the emulator, at {}", p.counted_at);
  if (!p.arch.empty()) text += fmt::format("\nregisters and machine code: by nvcc for {}", p.arch);
  return text;
}

std::string floor_text(const Profile& p) {
  if (p.floor_ms <= 0) return "roofline       n/a";
  std::string text =
      fmt::format("roofline       bound by {} on {}: at these sizes every kernel takes at least {}",
                  p.bound_by, p.peak, format_time_ms(p.floor_ms));
  if (const auto time = p.time_ms())
    text += fmt::format("; this one takes {} under ncu, {:.1f} % of peak", format_time_ms(*time),
                        100 * p.floor_ms / *time);
  return text;
}

std::string profile_text(const Profile& p, const Terminal& t) {
  std::string text = t.fold(headline(p, t)) + "\n" +
                     (p.predicted ? t.fold(predicted_text(*p.predicted, t), 0) : t.fold(floor_text(p), 15));
  // The kernels that take the time first; where nothing was timed, as they are launched.
  std::vector<const KernelProfile*> kernels;
  for (const KernelProfile& kernel : p.kernels) kernels.push_back(&kernel);
  std::stable_sort(kernels.begin(), kernels.end(), [](const KernelProfile* a, const KernelProfile* b) {
    return a->time_us.value_or(0) > b->time_us.value_or(0);
  });
  for (const KernelProfile* kernel : kernels) {
    const bool only_compiled = !kernel->launches && (p.verified || !p.counted_at.empty());
    text += "\n\n" + t.paint(Tone::kBold, kernel->kernel) +
            (kernel->time_us ? ": " + format_time_ms(*kernel->time_us / 1e3) : "");
    if (only_compiled)
      text += p.verified ? ": compiled; it may be one of those above"
                         : ": compiled, not launched at " + p.counted_at;
    for (const Answer& answer : answers(*kernel, !only_compiled)) {
      const std::string line = t.fold(fmt::format("  {:<18} {}", answer.question, answer.text), 21);
      text += "\n" + (answer.trouble ? line.substr(0, 21) + t.paint(Tone::kWarn, line.substr(21)) : line);
    }
  }
  return text;
}

Result<ExitCode> run(const Context& context, const workflows::ProfileKernelRequest& request) {
  CAPSTONE_TRY(const Profile p, workflows::profile_kernel(request, context, context.progress()));
  context.terminal.out(context.json ? Json(p).dump(2) : profile_text(p, context.terminal));
  return ExitCode::kDone;
}

std::string check_arch(const std::string& text) {
  const bool fits = text.starts_with("sm_") && text.size() > 4 && text.size() < 9 &&
                    std::isdigit(static_cast<unsigned char>(text[3]));
  return fits ? std::string() : std::string("an architecture is called sm_80, sm_90a …");
}

}  // namespace

void add_profile(CLI::App& app, Context& context, Action& action) {
  auto* command =
      app.add_subcommand("profile",
                         "explain why a kernel takes its time: ncu's counters in words, or what compiler "
                         "and emulator know without ncu");
  auto r = std::make_shared<workflows::ProfileKernelRequest>();
  auto no_ncu = std::make_shared<bool>(false);
  command->add_option("kernel", r->what,
                      "human (default), llm, a .cu file, or a reference kernel by number or name");
  command->add_option("--problem", r->problem, "the problem that a file or reference kernel solves");
  command->add_option("--size", r->size,
                      "of the profiled launch: rows=8192,cols=8192 (default: the measured size)");
  command->add_option("--on", r->device,
                      "the GPU of the roofline: h100, 4090 … (default: this machine's, else an H100)");
  command->add_option("--arch", r->arch, "of the machine code: sm_86 (default: this GPU's, else sm_90a)")
      ->check(check_arch);
  command->add_option("--csv", r->csv, "write ncu's own table to this file");
  command->add_flag("--no-ncu", *no_ncu, "only what is known without counters");
  add_format(*command, context);
  command->callback([&context, &action, r, no_ncu] {
    r->use_ncu = !*no_ncu;
    action = [&context, r] { return run(context, *r); };
  });
}

}  // namespace capstone::cli
