#include "harness/runtime/build/run_program.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/emulator/runtime/time_limit.h"
#include "harness/runtime/build/cache.h"
#include "harness/runtime/build/compiler.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/build/neighbours.h"
#include "harness/runtime/python/extensions.h"
#include "harness/runtime/sandbox/sandbox.h"
#include "harness/runtime/worker/report.h"

namespace capstone {
namespace {
constexpr std::size_t kLargestProgramFile = std::size_t{1} << 30;  // [B]
constexpr std::chrono::seconds kPatience{10};                      // beyond the time limit, for its message
constexpr int kMaxProgramTasks = 1024;  // blocks of a cooperative launch have a thread each
constexpr std::size_t kLargestSource = std::size_t{16} << 20;  // [B]
constexpr std::chrono::seconds kNvccLimit{300};

std::vector<fs::path> sources_of(const ProgramRequest& request) {
  std::vector<fs::path> sources{fs::canonical(request.source)};
  for (const fs::path& more : request.more_sources) sources.push_back(fs::canonical(more));
  return sources;
}

std::vector<std::string> nvcc_flags(const ProgramRequest& request, const std::string& arch) {
  const std::string number = arch.substr(3);
  std::vector<std::string> flags{"-std=" + request.standard,
                                 "-O3",
                                 "-t",
                                 "2",
                                 "-gencode",
                                 fmt::format("arch=compute_{0},code=sm_{0}", number)};
  for (const fs::path& folder : request.include_folders) flags.insert(flags.end(), {"-I", folder.string()});
  for (const std::string& definition : request.definitions) flags.push_back("-D" + definition);
  return flags;
}

// The program in the cache, by the digest of all that went into it; or nvcc's log.
struct Built {
  fs::path program;
  std::string log;
};
Result<Built> build_with_nvcc(const ProgramRequest& request, const std::string& arch, const Sandbox& sandbox,
                              const Resources& resources) {
  CAPSTONE_TRY(const CudaToolkit toolkit, find_toolkit(resources));
  const std::vector<fs::path> sources = sources_of(request);
  const std::vector<std::string> flags = nvcc_flags(request, arch);
  DigestBuilder digest;
  for (const fs::path& source : sources) {
    CAPSTONE_TRY(const std::string text, read_file(source, kLargestSource));
    digest.add(source.filename().string(), text).add("neighbours", digest_of_neighbours(source));
  }
  digest.add("flags", join(flags, " ")).add("nvcc", toolkit.version);
  const fs::path folder = resources.cache / "programs" / digest.hex().substr(0, 32);
  std::error_code ignored;
  if (use_cached(folder) && fs::exists(folder / "program", ignored)) return Built{folder / "program", {}};

  const fs::path work = temporary_beside(folder);
  CAPSTONE_CHECK(make_folders(work));
  CompilerStep step;
  step.argv = {toolkit.nvcc.string()};
  step.argv.insert(step.argv.end(), flags.begin(), flags.end());
  step.read = request.include_folders;
  step.read.push_back(toolkit.root);
  for (const fs::path& source : sources) {
    step.argv.push_back(source.string());
    step.read.push_back(source.parent_path());
  }
  step.argv.insert(step.argv.end(), {"-o", "program"});
  step.cwd = step.work = work;
  step.timeout = kNvccLimit;
  CAPSTONE_TRY(const ProcessResult run, run_compiler(step, &sandbox, resources));
  if (!run.ok() || !is_own_file(work / "program")) {
    fs::remove_all(work, ignored);
    return Built{{}, run.err + run.out + "\n" + explain_end(run, step)};
  }
  fs::rename(work, folder, ignored);  // fails where another process was first: its program is as good
  if (ignored) fs::remove_all(work, ignored);
  return Built{folder / "program", {}};
}
}  // namespace

Result<CudaRun> run_cuda_program(const ProgramRequest& request, const std::string& arch,
                                 const Resources& resources) {
  std::error_code ignored;
  for (const fs::path& file : request.more_sources)
    if (!fs::is_regular_file(file, ignored)) return fail("no such file", file.string());
  if (!fs::is_regular_file(request.source, ignored)) return fail("no such file", request.source.string());
  Sandbox sandbox = Sandbox::detect(resources);
  CudaRun run;
  CAPSTONE_TRY(const Built built, build_with_nvcc(request, arch, sandbox, resources));
  run.log = built.log;
  if (!run.built()) return run;
  ProcessSpec spec;
  spec.argv = {built.program.string()};
  spec.argv.insert(spec.argv.end(), request.arguments.begin(), request.arguments.end());
  spec.timeout = request.timeout;
  spec.max_file = kLargestProgramFile;
  const fs::path data = fs::canonical(request.source).parent_path();
  if (!request.confined) sandbox = Sandbox::none(resources, "this program needs what it refuses");
  CAPSTONE_TRY(run.process, run_process(sandbox.confine(
                                std::move(spec),
                                {.read = {built.program.parent_path(), data}, .write = {}, .gpu = true})));
  return run;
}

bool names_a_mistake(const std::string& err) {
  for (const std::string& line : split(err, '\n'))
    if (line.starts_with("capstone: ") && line.find(": warning: ") == line.npos) return true;
  return false;
}

Result<void> expect_built(const ProgramRun& run) {
  const BuildResult& build = run.build.result;
  if (!run.build.not_judgeable.empty())
    return fail("not judgeable on the CPU: " + run.build.not_judgeable, {}, "run it on a GPU",
                ExitCode::kEnvironment);
  if (build.ok) return {};
  const CompilerMessage none{}, &first = build.first_error ? *build.first_error : none;
  const bool header_missing = first.text.ends_with("No such file or directory");
  return fail("the program does not build: " + first.text, fmt::format("{}:{}", first.file, first.line),
              header_missing
                  ? "the compiler searches only the source's folder: add other header folders with -I"
                  : "",
              ExitCode::kGateOneFailed);
}

Result<void> expect_ended(const ProgramRun& run, const ProgramRequest& request) {
  const auto failed = [&](std::string what, std::string hint) -> Result<void> {
    return fail(std::move(what), request.source.string(), std::move(hint), ExitCode::kGateOneFailed);
  };
  switch (run.process.end) {
    case ProcessResult::End::kExited:
      return {};
    case ProcessResult::End::kTimedOut:
      return failed(fmt::format("the program did not end within {} s", request.timeout.count()),
                    "the CPU is a thousand times slower than a GPU: use smaller sizes, or raise --timeout");
    case ProcessResult::End::kTooMuchOutput:
      return failed("the program wrote more than 8 MiB", "print less");
    case ProcessResult::End::kTooMuchMemory:
      return failed(fmt::format("the program needed more than {} GiB", request.max_memory >> 30),
                    "use smaller sizes, or raise --memory");
    case ProcessResult::End::kTooManyTasks:
      return failed("the program started too many threads or processes",
                    "use fewer blocks in a cooperative launch");
    case ProcessResult::End::kSignalled:
      return failed(fmt::format("the program died of signal {} in its host code", run.process.status), {});
    case ProcessResult::End::kInterrupted:
      return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  }
  return {};
}

namespace {
Result<ProgramRun> run_every_check(ProgramRequest request, const Resources& resources) {
  request.every_check = false;
  ProgramRun run;
  for (const BuildVariant variant : {BuildVariant::kAsan, BuildVariant::kInstrumented}) {
    request.variant = variant;
    CAPSTONE_TRY(run, run_emulated_program(request, resources));
    if (!run.build.result.ok || run.process.end != ProcessResult::End::kExited) return run;
    if (!names_a_mistake(run.process.err)) continue;
    if (run.process.status == 0) run.process.status = 1;  // the program did not look at the error
    return run;
  }
  return run;
}

/// What both kinds of programs are run with.
ProcessSpec spec_of(const ProgramRequest& request) {
  ProcessSpec spec;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(request.timeout);
  spec.env = {{"CAPSTONE_SCHEDULE", fmt::format("{}:{}", request.schedule, request.seed)},
              {"CAPSTONE_TIME_LIMIT", std::to_string(limit.count())}};
  // The program's own watch says where it was. Where it cannot, it is ended from here.
  spec.timeout = capstone_emu::kMostWaits * request.timeout + kPatience;
  spec.max_memory = request.max_memory;
  spec.max_file = kLargestProgramFile;
  spec.max_tasks = kMaxProgramTasks;
  return spec;
}
}  // namespace

Result<ProgramRun> run_emulated_program(const ProgramRequest& request, const Resources& resources) {
  if (request.every_check) return run_every_check(request, resources);
  if (request.source.extension() == ".py") return run_python_program(request, spec_of(request), resources);
  Sandbox sandbox = Sandbox::detect(resources);
  BuildRequest build;
  build.source = request.source;
  build.more_sources = request.more_sources;
  build.resources = &resources;
  build.sandbox = &sandbox;
  build.cuda_arch = request.cuda_arch;
  build.variant = request.observe ? BuildVariant::kInstrumented : request.variant;
  build.include_folders = request.include_folders;
  build.definitions = request.definitions;
  build.standard = request.standard;
  build.openmp = request.openmp;
  ProgramRun run;
  CAPSTONE_TRY(run.build, build_emulated(build));
  if (!run.build.result.ok) return run;

  std::error_code ignored;
  if (!request.output.empty()) {
    std::error_code code;
    fs::copy_file(run.build.program, request.output, fs::copy_options::overwrite_existing, code);
    if (code)
      return fail("cannot write the program: " + code.message(), request.output.string(),
                  "name a file in a folder that exists");
    run.process.end = ProcessResult::End::kExited;
    return run;
  }
  const std::filesystem::path folder = std::filesystem::absolute(request.source, ignored).parent_path();
  ProcessSpec spec = spec_of(request);
  spec.argv = {run.build.program.string()};
  spec.argv.insert(spec.argv.end(), request.arguments.begin(), request.arguments.end());
  constexpr int kReport = 3;  // the program's number of it
  Descriptor report;
  if (request.observe) {
    report = Descriptor(::memfd_create("capstone-report", MFD_CLOEXEC));
    if (!report) return fail("no memory for the program's report", {}, {}, ExitCode::kEnvironment);
    spec.fds = {{report.get(), kReport}};
    spec.env.emplace_back("CAPSTONE_REPORT", std::to_string(kReport));
  }
  CAPSTONE_TRY(run.process,
               run_process(sandbox.confine(std::move(spec), {.read = {folder}, .write = {}, .gpu = false})));
  struct ::stat written = {};
  if (report && ::fstat(report.get(), &written) == 0 && written.st_size > 0) {
    CAPSTONE_TRY(run.report, read_report(report.get(), static_cast<std::uint64_t>(written.st_size)));
  }
  return run;
}

}  // namespace capstone
