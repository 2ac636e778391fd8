#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/judge/judge.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/python/python.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone::cli {
namespace {

struct Row {
  std::string what, state, found, cost;  ///< state: ok, missing, limited
};

std::string first_line(const std::vector<std::string>& argv) {
  ProcessSpec spec;
  spec.argv = argv;
  spec.timeout = std::chrono::seconds(30);
  auto result = run_process(spec);
  if (!result || !result->ok()) return {};
  return std::string(trim(split(result->out.empty() ? result->err : result->out, '\n').front()));
}

Row program(const Context& context, const std::string& name, const std::vector<std::string>& argv,
            const std::string& cost) {
  auto path = find_program(name, context.resources.path_variable);
  if (!path) return {name, "missing", "not on PATH", cost};
  return {name, "ok", first_line(argv), {}};
}

// Finds Python as `measure` does, and imports PyTorch. With it: whether Triton kernels can be interpreted.
std::vector<Row> pytorch(const Resources& resources, bool gpu) {
  constexpr const char* kWithout =
      "the problem's native baseline is the reference; no candidate in Python can be judged";
  auto python = find_python("auto", resources);
  if (!python) return {{"PyTorch", "missing", python.error().what, kWithout}};
  const std::string what =
      fmt::format("{}, {} (Python {})", python->torch, python->program.string(), python->version);
  const auto torch = import_torch(*python);
  if (!torch) return {{"PyTorch", "limited", what + ", which cannot be imported", kWithout}};
  const Row triton =
      python->triton.empty()
          ? Row{"Triton", "missing", "not installed with NumPy for " + python->program.string(),
                "no candidate with Triton kernels can be judged (optional: docs/how-to/pytorch.md)"}
          : Row{"Triton", "ok", python->triton + (gpu ? "" : ", interpreted on the CPU"), {}};
  if (gpu && !torch->computes)
    return {{"PyTorch", "limited",
             fmt::format("{}: it cannot use this GPU (built for {})", what, torch->built_for), kWithout},
            triton};
  return {{"PyTorch", "ok", what, {}}, triton};
}

std::vector<Row> examine(const Context& context) {
  const Resources& r = context.resources;
  std::vector<Row> rows;
  auto gpu = find_gpu(r);
  rows.push_back(gpu ? Row{"NVIDIA GPU",
                           "ok",
                           fmt::format("{} ({}), driver {}, {}", gpu->name, gpu->arch(), gpu->driver,
                                       format_bytes(gpu->memory_bytes)),
                           {}}
                     : Row{"NVIDIA GPU", "missing", gpu.error().what,
                           "gate two is not judged here; gate one runs on the emulated backend"});
  auto toolkit = find_toolkit(r);
  rows.push_back(toolkit
                     ? Row{"nvcc", "ok", toolkit->version + " at " + toolkit->nvcc.string(), {}}
                     : Row{"nvcc", "missing", toolkit.error().what, "no kernel can be built for a GPU here"});
  auto headers = find_cuda_headers(r);
  rows.push_back(headers ? Row{"CUDA headers", "ok", headers->string(), {}}
                         : Row{"CUDA headers", "missing", headers.error().what, headers.error().hint});
  rows.push_back(program(context, "g++", {"g++", "--version"},
                         "required: the emulated backend compiles with it (apt install g++)"));
  auto cutlass = find_cutlass_headers(r);
  rows.push_back(
      cutlass ? Row{"CUTLASS headers", "ok", cutlass->string(), {}}
              : Row{"CUTLASS headers", "missing", cutlass.error().what,
                    "kernels that include <cute/…> or <cutlass/…> do not compile: " + cutlass.error().hint});
  Sandbox sandbox = Sandbox::detect(r);
  rows.push_back({"isolation", sandbox.isolated() ? "ok" : "limited", sandbox.description(),
                  isolation_advice(sandbox, r)});
  rows.push_back(program(context, "gnuplot", {"gnuplot", "--version"},
                         "reports have tables but no plots (apt install gnuplot-nox)"));
  for (Row& row : pytorch(r, gpu.has_value())) rows.push_back(std::move(row));
  rows.push_back(
      program(context, "ncu", {"ncu", "--version"}, "no hardware counters (comes with the CUDA Toolkit)"));
  std::error_code code;
  fs::create_directories(r.cache, code);
  rows.push_back(code ? Row{"cache", "missing", r.cache.string() + ": " + code.message(),
                            "set CAPSTONE_CACHE to a folder that you can write"}
                      : Row{"cache", "ok", r.cache.string(), {}});
  auto key = workflows::judge_key(context);
  const fs::perms others = fs::perms::group_all | fs::perms::others_all;
  const bool open = (fs::status(context.state / "judge-key", code).permissions() & others) != fs::perms::none;
  rows.push_back(key ? Row{"judge's key", open ? "limited" : "ok", key->public_key(),
                           open ? "others can read it and sign with it: chmod 600 " +
                                      (context.state / "judge-key").string()
                                : ""}
                     : Row{"judge's key", "missing", key.error().where + ": " + key.error().what,
                           "nothing can be measured: " + key.error().hint});
  return rows;
}

Result<ExitCode> doctor(const Context& context) {
  auto rows = examine(context);
  const Terminal& t = context.terminal;
  if (context.json) {
    Json all = Json::array();
    for (const Row& row : rows)
      all.push_back(
          {{"what", row.what}, {"state", row.state}, {"found", row.found}, {"without_it", row.cost}});
    t.out(all.dump(2));
  } else {
    t.out("capstone " + context.resources.version);
    Table table({"what", "state", "found"});
    for (const Row& row : rows) {
      table.row({row.what, t.paint(row.state == "ok" ? Tone::kGood : Tone::kWarn, row.state), row.found});
      if (!row.cost.empty()) table.line(std::string(22, ' ') + row.cost);
    }
    t.out(table.text(t));
    BackendChoice choice = choose_backend(Backend::kAuto, context.resources);
    t.out(choice.backend == Backend::kCuda ? "kernels are judged on the GPU"
                                           : "kernels are judged on the emulated backend: " + choice.because);
  }
  bool unusable = rows[2].state != "ok" || rows[3].state != "ok";
  return unusable ? ExitCode::kEnvironment : ExitCode::kDone;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("doctor", "check dependencies and report missing features");
  add_format(*command, context);
  command->callback([&context, &action] { action = [&context] { return doctor(context); }; });
}

}  // namespace capstone::cli
