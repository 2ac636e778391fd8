#include "harness/runtime/build/cuda.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <map>
#include <regex>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cache.h"
#include "harness/runtime/build/compiler.h"
#include "harness/runtime/build/neighbours.h"

namespace capstone {
namespace {

constexpr std::size_t kLogLimit = 64 * 1024;
constexpr std::size_t kCompilerMemory = std::size_t{8} << 30;  // [B]

// nvcc on one source. `sandbox` is nullptr for our own.
Result<ProcessResult> compile(const std::vector<std::string>& argv, const fs::path& folder,
                              const Resources& resources, const Sandbox* sandbox = nullptr,
                              std::vector<fs::path> read = {}) {
  return run_compiler({.argv = argv,
                       .cwd = folder,
                       .work = folder,
                       .read = std::move(read),
                       .timeout = std::chrono::minutes(5),
                       .max_memory = kCompilerMemory},
                      sandbox, resources);
}

// How the message begins where a source needs them.
constexpr std::string_view kCutlassMissing = "CUTLASS's headers were not found";

// A source and its build: what nvcc said, how it was called.
struct Compilation {
  ProcessResult run;
  std::vector<std::string> argv;
};

// nvcc on a submission, with CUTLASS's headers where it comes to them. Where they are not there, the log says
// what to do in the form of a compiler's message.
Result<Compilation> compile_submission(std::vector<std::string> argv, const fs::path& folder,
                                       const BuildRequest& request, const CudaToolkit& toolkit) {
  std::vector<fs::path> read{fs::absolute(request.source).parent_path(), toolkit.root};
  CAPSTONE_TRY(auto run, compile(argv, folder, *request.resources, request.sandbox, read));
  const auto lacking = lacks_cutlass(run.err + run.out);
  if (run.ok() || !lacking) return Compilation{std::move(run), std::move(argv)};
  const auto headers = find_cutlass_headers(*request.resources);
  if (!headers) {
    run.err = fmt::format("{}:{}: error: {} in {}; {}\n", lacking->file, lacking->line, kCutlassMissing,
                          headers.error().where, headers.error().hint);
    return Compilation{std::move(run), std::move(argv)};
  }
  argv.insert(argv.begin() + 1, {"-isystem", headers->string(), "--expt-relaxed-constexpr"});
  read.push_back(*headers);
  CAPSTONE_TRY(run, compile(argv, folder, *request.resources, request.sandbox, read));
  return Compilation{std::move(run), std::move(argv)};
}

// What a build may take from CUTLASS, for its digest.
std::string cutlass_identity(const Resources& resources) {
  return resources.cutlass.empty() ? kCutlassVersion : resources.cutlass.string();
}

// "sm_90a" → the -gencode that makes exactly this machine code. The `a` targets have no plain shorthand.
std::string gencode(const std::string& arch) {
  std::string number = arch.substr(3);
  return fmt::format("arch=compute_{},code=sm_{}", number, number);
}

// A folder that appears under its final name only when it is complete; two builds at once do no harm.
Result<fs::path> publish(const fs::path& temporary, const fs::path& final_folder) {
  std::error_code code;
  fs::rename(temporary, final_folder, code);
  if (code && !fs::exists(final_folder))
    return fail("cannot keep the build: " + code.message(), final_folder.string());
  if (code) fs::remove_all(temporary, code);
  return final_folder;
}

// The fat binaries as the linker put them: what the replayer loads is byte for byte what the object would
// have loaded.
Result<void> extract_device_code(const fs::path& folder, const Resources& resources, const Sandbox* sandbox) {
  CAPSTONE_TRY(auto run,
               compile({"objcopy", "-O", "binary", "--only-section=.nv_fatbin", "kernel.so", "kernel.fatbin"},
                       folder, resources, sandbox, {}));
  if (!run.ok())
    return fail("cannot take the device code out of a build: " + std::string(trim(run.err)), folder.string(),
                "objcopy (package binutils) is needed in addition to the compiler", ExitCode::kEnvironment);
  return {};
}

// Tensor-core instructions in the machine code, "HMMA, IMMA"; empty: none. Nothing to say without cuobjdump.
std::string tensor_instructions_of(const fs::path& folder, const CudaToolkit& toolkit,
                                   const Resources& resources, const Sandbox& sandbox) {
  if (auto known = read_file(folder / "tensor.txt")) return *known;
  std::error_code ignored;
  const fs::path tool = toolkit.nvcc.parent_path() / "cuobjdump";
  if (!fs::exists(tool, ignored)) return {};
  // A listing of all instructions may be huge: only the names come back.
  const std::string pipeline = "'" + replace_all(tool.string(), "'", "") +
                               "' -sass kernel.so | grep -oE "
                               "' (HMMA|HGMMA|IMMA|IGMMA|QMMA|QGMMA|DMMA|BMMA|UTC[HQIO]MMA)\\b' | sort -u";
  auto run = compile({"/bin/sh", "-c", pipeline}, folder, resources, &sandbox, {toolkit.root});
  if (!run) return {};
  std::vector<std::string> found;
  for (const std::string& line : split(run->out, '\n'))
    if (!trim(line).empty()) found.emplace_back(trim(line));
  const std::string names = join(found, ", ");
  (void)write_file_atomic(folder / "tensor.txt", names);  // else it is looked for again
  return names;
}

void look_for_tensor_instructions(Artifact& artifact, const BuildRequest& request,
                                  const CudaToolkit& toolkit) {
  if (!request.sandbox) return;
  artifact.tensor_instructions =
      std::async(std::launch::async, [folder = artifact.program.parent_path(), toolkit,
                                      resources = request.resources, sandbox = *request.sandbox] {
        return tensor_instructions_of(folder, toolkit, *resources, sandbox);
      }).share();
}

struct Cudnn {
  fs::path include, libraries;
};

// Beside the Toolkit, from the distribution, or from NVIDIA's Python package.
std::optional<Cudnn> find_cudnn(const CudaToolkit& toolkit) {
  std::error_code ignored;
  std::vector<Cudnn> places{{toolkit.root / "include", toolkit.libraries()},
                            {toolkit.root / "include", toolkit.root / "lib"},
                            {"/usr/include", "/usr/lib/x86_64-linux-gnu"},
                            {"/usr/include/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu"},
                            {"/usr/include/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu"}};
  ProcessSpec spec;
  spec.argv = {"python3", "-c", "import nvidia.cudnn as c; print(list(c.__path__)[0])"};
  spec.timeout = std::chrono::seconds(20);
  if (auto asked = run_process(spec); asked && asked->ok())
    places.push_back({fs::path(trim(asked->out)) / "include", fs::path(trim(asked->out)) / "lib"});
  for (const Cudnn& place : places)
    if (fs::exists(place.include / "cudnn.h", ignored) &&
        fs::exists(place.libraries / "libcudnn.so.9", ignored))
      return place;
  return std::nullopt;
}

}  // namespace

fs::path CudaToolkit::libraries() const {
  std::error_code ignored;
  for (const char* name : {"lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib"})
    if (fs::exists(root / name / "libcudart.so", ignored)) return root / name;
  return root / "lib64";
}

Result<CudaToolkit> find_toolkit(const Resources& resources) {
  std::optional<fs::path> nvcc;
  if (!resources.ignore_toolkit) {
    nvcc = find_program("nvcc", resources.path_variable);
    if (!nvcc && ::access("/usr/local/cuda/bin/nvcc", X_OK) == 0) nvcc = "/usr/local/cuda/bin/nvcc";
  }
  if (!nvcc)
    return fail(
        "no CUDA compiler: nvcc is neither on PATH nor in /usr/local/cuda/bin", {},
        "install the CUDA Toolkit (https://developer.nvidia.com/cuda-downloads), or use --backend emulated",
        ExitCode::kEnvironment);
  CudaToolkit toolkit;
  toolkit.nvcc = *nvcc;
  std::error_code code;
  fs::path real = fs::canonical(*nvcc, code);
  toolkit.root = (code ? *nvcc : real).parent_path().parent_path();
  ProcessSpec spec;
  spec.argv = {nvcc->string(), "--version"};
  spec.timeout = std::chrono::seconds(20);
  CAPSTONE_TRY(auto result, run_process(spec));
  std::smatch match;
  if (std::regex_search(result.out, match, std::regex("release ([0-9]+\\.[0-9]+)")))
    toolkit.version = match[1];
  return toolkit;
}

std::optional<CompilerMessage> lacks_cutlass(const std::string& log) {
  const auto error = first_compiler_error(log);
  if (!error || error->text.find(": No such file") == std::string::npos) return std::nullopt;
  if (!error->text.starts_with("cute/") && !error->text.starts_with("cutlass/")) return std::nullopt;
  return error;
}

std::optional<CompilerMessage> first_compiler_error(const std::string& raw) {
  const std::string log = printable(raw);  // `#line` puts any name into it
  // nvcc: file(12): error: text      g++: file:12:5: error: text      ld: undefined reference to `launch'
  static const std::regex nvcc_form(R"(^(.+?)\((\d+)\): (?:error|catastrophic error)[^:]*: (.*)$)");
  static const std::regex gcc_form(R"(^(.+?):(\d+)(?::(\d+))?: (?:fatal )?error: (.*)$)");
  for (const std::string& line : split(log, '\n')) {
    if (line.size() > 2000) continue;
    std::smatch m;
    if (line.find("undefined reference to `launch'") != std::string::npos ||
        line.find("undefined reference to 'launch'") != std::string::npos)
      return CompilerMessage{
          "", 0, 0,
          "the file defines no extern \"C\" void launch(...): see problem/launch.h for the declaration"};
    if (line.find("requires separate compilation mode") != std::string::npos &&
        std::regex_match(line, m, nvcc_form))
      return CompilerMessage{
          m[1], std::stoi(m[2]), 0,
          "a kernel launches a kernel: that needs nvcc -rdc=true, and the judge compiles one file "
          "without it; launch the second kernel from launch()"};
    if (std::regex_match(line, m, nvcc_form)) return CompilerMessage{m[1], std::stoi(m[2]), 0, m[3]};
    if (std::regex_match(line, m, gcc_form))
      return CompilerMessage{m[1], std::stoi(m[2]), m[3].matched ? std::stoi(m[3]) : 0, m[4]};
  }
  for (const std::string& line : split(log, '\n'))
    if (line.find("undefined reference to") != std::string::npos || line.find("fatal") != std::string::npos)
      return CompilerMessage{"", 0, 0, std::string(trim(line))};
  return std::nullopt;
}

Result<Artifact> build_cuda(const BuildRequest& request, const std::string& arch,
                            const std::vector<std::string>& libraries) {
  CAPSTONE_TRY(CudaToolkit toolkit, find_toolkit(*request.resources));
  CAPSTONE_TRY(std::string source, read_file(request.source, 16u << 20));
  const std::string header = launch_header(*request.problem), adapter = adapter_source(*request.problem);
  std::vector<std::string> flags{
      "-std=c++17", "--extended-lambda", "-O3",        "-lineinfo", "-gencode",   gencode(arch), "-cudart",
      "shared",     "--default-stream",  "per-thread", "-shared",   "-Xcompiler", "-fPIC",       "-t",
      "2"};
  if (request.problem->fast_math) flags.push_back("-use_fast_math");
  for (const std::string& library : libraries) {
    if (library != "cudnn") {
      flags.push_back("-l" + library);
      continue;
    }
    // Without cuDNN the baseline has a slower way of its own, and its label says which it was.
    if (auto cudnn = find_cudnn(toolkit))
      flags.insert(flags.end(), {"-DCAPSTONE_USE_CUDNN", "-I", cudnn->include.string(), "-Xlinker",
                                 (cudnn->libraries / "libcudnn.so.9").string(), "-Xlinker",
                                 "-rpath," + cudnn->libraries.string()});
  }
  DigestBuilder digest;
  digest.add("source", source).add("header", header).add("adapter", adapter).add("flags", join(flags, " "));
  digest.add("nvcc", toolkit.version + toolkit.nvcc.string()).add("path", request.source.string());
  digest.add("isolated", request.sandbox && request.sandbox->isolated() ? "yes" : "no");
  digest.add("neighbours", digest_of_neighbours(request.source));
  digest.add("cutlass", cutlass_identity(*request.resources));
  const fs::path folder = request.resources->cache / "cuda" / digest.hex().substr(0, 32);
  const fs::path library = folder / "kernel.so";

  Artifact artifact;
  std::error_code code;
  if (use_cached(folder) && fs::exists(library, code)) {
    artifact.result.ok = artifact.result.cached = true;
    artifact.program = library;
    artifact.device_code = folder / "kernel.fatbin";
    if (auto command = read_file(folder / "command.txt")) artifact.result.command = *command;
    if (auto log = read_file(folder / "log.txt")) artifact.result.log = *log;
    if (auto seconds = read_file(folder / "seconds.txt"))
      artifact.result.compile_seconds = std::strtod(seconds->c_str(), nullptr);
    look_for_tensor_instructions(artifact, request, toolkit);
    return artifact;
  }
  const fs::path work = temporary_beside(folder);
  fs::remove_all(work, code);
  CAPSTONE_CHECK(make_folders(work));
  CAPSTONE_CHECK(write_file_atomic(work / "launch.h", header));
  CAPSTONE_CHECK(write_file_atomic(work / "adapter.cu", adapter));
  std::vector<std::string> argv{toolkit.nvcc.string()};
  argv.insert(argv.end(), flags.begin(), flags.end());
  argv.insert(argv.end(), {"-include", "launch.h", "-I", ".", "-Xlinker", "-zdefs", "-Xlinker",
                           "-rpath," + toolkit.libraries().string(), fs::absolute(request.source).string(),
                           "adapter.cu", "-o", "kernel.so"});
  CAPSTONE_TRY(auto compilation, compile_submission(std::move(argv), work, request, toolkit));
  const ProcessResult& run = compilation.run;
  artifact.result.seconds = artifact.result.compile_seconds = double(run.wall.count()) / 1000;
  artifact.result.command = join(compilation.argv, " ");
  artifact.result.log = to_utf8((run.err + run.out).substr(0, kLogLimit));
  artifact.result.ok = run.ok() && is_own_file(work / "kernel.so");
  if (run.end == ProcessResult::End::kTimedOut)
    artifact.result.first_error =
        CompilerMessage{request.source.string(), 0, 0, "nvcc did not finish within 5 minutes"};
  else if (!run.ok())
    artifact.result.first_error = first_compiler_error(artifact.result.log);
  if (!artifact.result.ok) {
    if (!artifact.result.first_error)
      artifact.result.first_error =
          CompilerMessage{request.source.string(), 0, 0, "nvcc failed without an error line"};
    if (artifact.result.first_error->file.empty())
      artifact.result.first_error->file = request.source.string();
    fs::remove_all(work, code);
    return artifact;
  }
  CAPSTONE_CHECK(write_file_atomic(work / "command.txt", artifact.result.command));
  CAPSTONE_CHECK(write_file_atomic(work / "log.txt", artifact.result.log));
  CAPSTONE_CHECK(write_file_atomic(work / "seconds.txt", fmt::format("{}", artifact.result.compile_seconds)));
  CAPSTONE_CHECK(extract_device_code(work, *request.resources, request.sandbox));
  CAPSTONE_TRY(auto kept, publish(work, folder));
  artifact.program = kept / "kernel.so";
  artifact.device_code = kept / "kernel.fatbin";
  look_for_tensor_instructions(artifact, request, toolkit);
  return artifact;
}

namespace {

constexpr std::size_t kMostWarnings = 3;

// Where a Toolkit's own header complains, the machine is at fault: an unsupported host compiler, for example.
bool is_about_the_machine(const CompilerMessage& error, const CudaToolkit& toolkit) {
  return error.line == 0 || (error.file.starts_with((toolkit.root / "").string()) &&
                             error.text.find("unsupported") != std::string::npos);
}

// nvcc: file(12): warning #20091-D: text      its compiler for devices: warning: file(12): Warning: text
std::vector<std::string> warnings_in(const std::string& log) {
  static const std::regex form(R"(^(?:warning: )?(.+?)\((\d+)\): (?:warning|Warning)[^:]*: (.*)$)");
  std::vector<std::string> warnings;
  for (const std::string& line : split(printable(log), '\n')) {
    std::smatch m;
    if (line.size() > 2000 || !std::regex_match(line, m, form)) continue;
    std::string warning =
        fmt::format("{}:{}: {}", fs::path(m[1].str()).filename().string(), m[2].str(), m[3].str());
    if (std::find(warnings.begin(), warnings.end(), warning) == warnings.end() &&
        warnings.size() < kMostWarnings)
      warnings.push_back(std::move(warning));
  }
  return warnings;
}

// The log of the last compilation of the same text, or of a new one.
Result<std::string> log_of_nvcc(const BuildRequest& request, const std::vector<std::string>& argv,
                                const CudaToolkit& toolkit) {
  CAPSTONE_TRY(const std::string source, read_file(request.source, 16u << 20));
  const std::string header = launch_header(*request.problem);
  const std::string digest =
      DigestBuilder()
          .add("source", source)
          .add("header", header)
          .add("command", join(argv, " "))
          .add("nvcc", toolkit.version)
          .add("isolated", request.sandbox && request.sandbox->isolated() ? "yes" : "no")
          .add("neighbours", digest_of_neighbours(request.source))
          .add("cutlass", cutlass_identity(*request.resources))
          .hex();
  const fs::path folder = request.resources->cache / "nvcc" / digest.substr(0, 32);
  std::error_code code;
  if (use_cached(folder))
    if (auto log = read_file(folder / "log.txt")) return log;
  const fs::path work = temporary_beside(folder);
  fs::remove_all(work, code);
  CAPSTONE_CHECK(make_folders(work));
  CAPSTONE_CHECK(write_file_atomic(work / "launch.h", header));
  CAPSTONE_TRY(const auto compilation, compile_submission(argv, work, request, toolkit));
  const ProcessResult& run = compilation.run;
  std::string log = to_utf8((run.err + run.out).substr(0, kLogLimit));
  if (!run.ok() && !first_compiler_error(log)) log += "fatal: nvcc failed without an error line\n";
  fs::remove_all(work, code);
  if (run.end == ProcessResult::End::kExited && log.find(kCutlassMissing) == std::string::npos) {
    CAPSTONE_CHECK(make_folders(folder));
    CAPSTONE_CHECK(write_file_atomic(folder / "log.txt", log));
  }
  return log;
}

}  // namespace

Result<NvccCheck> check_with_nvcc(const BuildRequest& request) {
  NvccCheck check;
  auto toolkit = find_toolkit(*request.resources);
  if (!toolkit) {
    check.why_not = toolkit.error().what;
    return check;
  }
  std::vector<std::string> argv{toolkit->nvcc.string(),
                                "-std=c++17",
                                "--extended-lambda",
                                "--default-stream",
                                "per-thread",
                                "-gencode",
                                "",                        // below
                                "-diag-suppress=177,550",  // what is never used does no harm
                                "-cuda",
                                "-include",
                                "launch.h",
                                "-I",
                                ".",
                                fs::absolute(request.source).string(),
                                "-o",
                                "kernel.ii"};
  // ptxas checks inline PTX. What only Blackwell has is checked as Blackwell's.
  for (const std::string_view arch : {"90a", "100a"}) {
    argv[6] = fmt::format("arch=compute_{0},code=compute_{0}", arch);
    CAPSTONE_TRY(check.log, log_of_nvcc(request, argv, *toolkit));
    if (check.log.find("not supported on .target 'sm_90a'") == std::string::npos) break;
  }
  check.command = join(argv, " ");
  const auto error = first_compiler_error(check.log);
  if (error && (error->text.starts_with(kCutlassMissing) || is_about_the_machine(*error, *toolkit))) {
    check.why_not = error->text;
    return check;
  }
  check.version = toolkit->version;
  check.error = error;
  check.warnings = warnings_in(check.log);
  return check;
}

namespace {

struct OwnProgram {
  std::string name, file;
  fs::path folder;  ///< in the cache
};

Result<OwnProgram> own_program(const std::string& name, const std::string& arch, const CudaToolkit& toolkit,
                               const Resources& resources) {
  const fs::path sources = resources.share / "harness" / "runtime" / "cuda";
  static const std::map<std::string, std::string> files{{"capstone-gpu-host", "gpu_host.cu"},
                                                        {"capstone-worker-cuda", "worker_cuda.cu"},
                                                        {"capstone-capture-worker", "capture_worker.cpp"},
                                                        {"capstone-replayer", "replayer.cu"}};
  const std::string& file = files.at(name);
  DigestBuilder digest;
  digest.add("arch", arch)
      .add("nvcc", toolkit.version + toolkit.nvcc.string())
      .add("version", resources.version);
  for (const fs::path& input :
       {sources / file, sources / "cuda_common.h", sources / "shim.h", sources / "captures.h",
        resources.share / "harness" / "base" / "packet.h", resources.share / "harness" / "base" / "json.h",
        resources.share / "harness" / "correctness" / "random.h",
        resources.share / "harness" / "correctness" / "narrow.h",
        resources.share / "harness" / "model" / "dtype.h"}) {
    CAPSTONE_TRY(std::string text, read_file(input));
    digest.add(input.filename().string(), text);
  }
  const fs::path folder = resources.cache / "programs" / digest.hex().substr(0, 32);
  return OwnProgram{name, file, folder};
}

Result<void> build_own_program(const OwnProgram& program, const std::string& arch, const CudaToolkit& toolkit,
                               const Resources& resources) {
  const auto& [name, file, folder] = program;
  const fs::path sources = resources.share / "harness" / "runtime" / "cuda";
  std::error_code code;
  const fs::path work = temporary_beside(folder);
  CAPSTONE_CHECK(make_folders(work));
  std::vector<std::string> argv{toolkit.nvcc.string(),
                                "-std=c++17",
                                "-O2",
                                "-gencode",
                                gencode(arch),
                                "-cudart",
                                "shared",
                                "--fmad=false",
                                "-I",
                                resources.share.string(),
                                "-I",
                                (resources.share / "include").string(),
                                (sources / file).string(),
                                "-o",
                                name,
                                "-ldl",
                                "-Xlinker",
                                "--export-dynamic",
                                "-Xlinker",  // the capture worker's calls stand in for the runtime's
                                "-rpath," + toolkit.libraries().string()};
  CAPSTONE_TRY(auto run, compile(argv, work, resources));
  if (!run.ok()) {
    auto message = first_compiler_error(run.err + run.out);
    fs::remove_all(work, code);
    return fail("cannot build " + name + ": " + (message ? message->text : std::string("nvcc failed")),
                message && message->line ? fmt::format("{}:{}", message->file, message->line) : file,
                "a CUDA Toolkit of 12.0 or newer and a C++17 host compiler are needed",
                ExitCode::kEnvironment);
  }
  CAPSTONE_TRY(auto kept, publish(work, folder));
  (void)kept;
  return {};
}

}  // namespace

Result<std::vector<fs::path>> own_cuda_programs(const std::vector<std::string>& names,
                                                const std::string& arch, const Resources& resources,
                                                const std::function<void(const std::string&)>& say) {
  CAPSTONE_TRY(CudaToolkit toolkit, find_toolkit(resources));
  std::vector<fs::path> programs;
  std::vector<std::future<Result<void>>> builds;
  for (const std::string& name : names) {
    CAPSTONE_TRY(OwnProgram program, own_program(name, arch, toolkit, resources));
    programs.push_back(program.folder / name);
    std::error_code code;
    if (fs::exists(programs.back(), code)) continue;
    if (builds.empty()) say("building capstone's own GPU programs for this GPU (once, some seconds)");
    builds.push_back(std::async(std::launch::async, [program, arch, toolkit, &resources] {
      return build_own_program(program, arch, toolkit, resources);
    }));
  }
  for (auto& build : builds) {
    auto built = build.get();
    if (!built) return fail(built.error());
  }
  return programs;
}

}  // namespace capstone
