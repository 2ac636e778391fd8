// A candidate for the CPU: preprocess → rewrite → compile → link with the emulator and the generated adapter.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <random>
#include <regex>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/build/cache.h"
#include "harness/runtime/build/compiler.h"
#include "harness/runtime/build/cuda.h"
#include "harness/runtime/build/linker_messages.h"
#include "harness/runtime/build/neighbours.h"
#include "harness/runtime/build/precompiled.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxLog = 64 * 1024;                              // [B]
constexpr int kArch = 900, kOlderArch = 800, kTensorMemoryArch = 1000;  // values of __CUDA_ARCH__

/// The first name in the text of instructions that only kTensorMemoryArch has here; empty: there is none.
std::string_view newer_ptx(std::string_view text) {
  for (const std::string_view name : {"tcgen05", "clusterlaunchcontrol"})
    if (text.find(name) != std::string_view::npos) return name;
  return {};
}
/// Said of every result of such a build.
std::string never_run(std::string_view name) {
  return fmt::format("{} is emulated from the ISA; never run on hardware here", name);
}

// CUDA code puns types; no errno; products and sums fuse as they do under nvcc.
const std::vector<std::string> kCompileFlags = {
    "-O2",
    "-march=native",
    "-g1",
    "-w",
    "-fno-strict-aliasing",
    "-fno-math-errno",
    "-fno-trapping-math",
    // g++ 12 reads the wrong ones of pairs that a vector loop loads under a condition.
    "-fno-tree-loop-if-convert",
    "-fno-delete-null-pointer-checks",
    "-fno-pie",
    "-fno-pic",
    "-fmax-errors=20",
    // Every page of a large frame is touched, so that no local array reaches beyond the guard below a stack.
    "-fstack-clash-protection",
    // A variable that was never set holds nonsense, as a register does, and not whatever happens to be there.
    "-ftrivial-auto-var-init=pattern",
#if defined(__x86_64__)
    "-fcf-protection=none",
#endif
#if defined(CAPSTONE_EMULATOR_UCONTEXT)
    "-DCAPSTONE_EMULATOR_UCONTEXT=1",
#endif
};

// What a compiler sees that explains a wrong result.
const std::vector<std::string> kWarnings = {
    "-Wparentheses",          "-Wuninitialized", "-Wmaybe-uninitialized",  "-Wreturn-type",
    "-Wsequence-point",       "-Warray-bounds",  "-Wdiv-by-zero",          "-Wshift-count-overflow",
    "-Wshift-count-negative", "-Wformat",        "-Wint-in-bool-context",  "-Wempty-body",
    "-Wduplicated-cond",      "-Wlogical-op",    "-Wtautological-compare", "-Wbool-compare"};

/// Warnings about lines of the source and of what lies next to it, each place once.
std::vector<CompilerMessage> warnings_of_gcc(const std::string& log) {
  constexpr std::size_t kMost = 8;
  static const std::regex form(R"(^([^/:][^:]*):(\d+):(\d+): warning: (.*)$)");
  std::vector<CompilerMessage> warnings;
  for (const std::string& line : split(log, '\n')) {
    std::smatch match;
    if (!std::regex_match(line, match, form) || warnings.size() == kMost) continue;
    const CompilerMessage warning{match[1], std::stoi(match[2]), std::stoi(match[3]), match[4]};
    if (std::none_of(warnings.begin(), warnings.end(), [&](const CompilerMessage& w) {
          return w.file == warning.file && w.line == warning.line;
        }))
      warnings.push_back(warning);
  }
  return warnings;
}

/// What a build variant adds to the candidate's compilation, and the emulator's library that it is linked
/// with.
struct VariantParts {
  const char* library;
  std::vector<std::string> flags;
  bool own_calls = false;  // what the candidate calls to allocate, copy and fill memory is replaced
                           // (hooks/{device_heap,entry_points}.cpp)
};
VariantParts parts_of(BuildVariant variant) {
  switch (variant) {
    case BuildVariant::kFast:
      // Short loops of a known number of rounds are unrolled, as nvcc does it.
      return {"libcapstone_emulator.a", {"-fpeel-loops"}};
    // The checks call our own functions (runtime/asan.cpp, ubsan.cpp) instead of libasan's and libubsan's.
    // Left out: what CUDA code does on purpose (shifting negative numbers, flattening `tile[0][i]`, float to
    // int of any value). With -O1 it compiles in half the time, and runs a few small cases only.
    case BuildVariant::kAsan:
      return {"libcapstone_emulator.a",
              {"-O1",
               "-fsanitize=address,signed-integer-overflow,integer-divide-by-zero,shift-exponent,null,"
               "alignment,return,unreachable",
               "-fsanitize-recover=all", "--param=asan-use-after-return=0"}};
    // Each access calls our function instead of libtsan's, each basic block one that counts it. A
    // float4 stays one access, loads stay in the order of the source, and arithmetic stays scalar, so that it
    // can be counted. GCC does not report the store in `tile[i] = combine(a, b)` if that is a call and the
    // result a structure: nearly nothing stays one. -O1 compiles a product of many tiles in half the time of
    // -O2, and with both kinds of inlining the counts are the same (tests/analysis/explain, HooksCounts).
    case BuildVariant::kInstrumented:
      return {
          "libcapstone_emulator_hooks.a",
          {"-O1", "-finline-functions", "-finline-small-functions", "-fsanitize=thread",
           "--param=tsan-instrument-func-entry-exit=0", "--param=tsan-distinguish-volatile=1",
           "-fsanitize-coverage=trace-pc", "-fno-tree-sra", "-fno-ipa-sra", "-fno-tree-vectorize",
           "-fno-reorder-blocks", "-fno-reorder-blocks-and-partition", "--param=max-inline-insns-single=2000",
           "--param=max-inline-insns-auto=2000", "--param=inline-unit-growth=1000",
           "--param=large-function-growth=2000", "--param=large-unit-insns=100000"},
          true};
  }
  return {};
}

/// How g++ reports a call that the rewriter wrote in the place of what only a GPU can run.
constexpr std::string_view kUnsupportedCall = "declared with attribute error: not judgeable: ";

/// The parts of the runtime that are compiled with CUDA's headers.
constexpr const char* kOwnSources[] = {"cuda_api",     "cuda_driver",   "cuda_graphs",
                                       "cuda_streams", "cuda_textures", "cuda_virtual_memory"};

/// What every step of one build needs.
struct Toolchain {
  fs::path compiler, headers, shims, runtime, library, rewriter;
  fs::path cutlass;                // empty: the source does not come to it
  std::vector<std::string> flags;  // of the candidate's compilation, its preprocessing included
  std::string version;             // of the compiler
  std::string identity;            // digest over everything that is not the candidate
  std::string own_identity;        // the same for our own sources, which all variants compile alike

  /// Stand-ins for cuBLAS, cuRAND and CUB, for programs. Thrust is NVIDIA's own, on its C++ back end: then
  /// the headers in cuda/ must be NVIDIA's, too, and they are read as a host compiler reads them.
  std::vector<std::string> library_flags(bool with_thrust) const {
    std::vector<std::string> folders = {"-isystem", (shims / "libraries").string(), "-isystem",
                                        (shims / "cccl").string()};
    if (with_thrust) {
      folders.insert(folders.end(),
                     {"-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP", "-Dcapstone_emu_device="});
      for (const std::string& flag : cccl_flags()) folders.push_back(flag);
    }
    return folders;
  }
  /// Where NVIDIA's headers in cuda/ are, which only a Toolkit has.
  fs::path cccl() const {
    std::error_code ignored;
    const fs::path folder = headers / "cccl";  // since CUDA 13
    return fs::exists(folder, ignored) ? folder : headers;
  }
  /// They come before ours.
  std::vector<std::string> cccl_flags() const {
    return {"-isystem", (shims / "cccl").string(), "-isystem", cccl().string()};
  }
  /// CuTe and CUTLASS are rewritten like the user's own text: kernels are templates in them.
  std::vector<std::string> cutlass_flags(int cuda_arch) const {
    std::vector<std::string> folders = {"-I", cutlass.string()};
    if (cuda_arch == kArch) folders.emplace_back("-D__CUDA_ARCH_FEAT_SM90_ALL=1");
    for (const std::string& flag : cccl_flags()) folders.push_back(flag);
    return folders;
  }
  std::vector<std::string> header_flags(bool with_shims) const {
    std::vector<std::string> folders;
    if (with_shims) folders = {"-isystem", shims.string()};
    // Naming /usr/include would change the order of the compiler's own folders.
    if (headers != "/usr/include") folders.insert(folders.end(), {"-isystem", headers.string()});
    return folders;
  }
};

/// The instructions that -march=native stands for: a cache may be shared between machines.
std::string processor_features() {
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string features;
  for (std::string line; std::getline(cpuinfo, line) && !line.empty();)
    if (line.starts_with("flags") || line.starts_with("Features") || line.starts_with("model name"))
      features += line;
  return features;
}

Result<std::string> compiler_version(const fs::path& compiler) {
  ProcessSpec spec;
  spec.argv = {compiler.string(), "--version"};
  CAPSTONE_TRY(ProcessResult result, run_process(spec));
  if (!result.ok())
    return fail("the C++ compiler does not run", compiler.string(), "install g++ 12 or newer",
                ExitCode::kEnvironment);
  return result.out.substr(0, result.out.find('\n'));
}

Result<Toolchain> find_toolchain(const Resources& resources, BuildVariant variant) {
  Toolchain tools;
  auto compiler = find_program("g++", resources.path_variable);
  if (!compiler) compiler = find_program("c++", resources.path_variable);
  if (!compiler)
    return fail("no C++ compiler found", resources.path_variable, "install g++ (apt install g++)",
                ExitCode::kEnvironment);
  tools.compiler = *compiler;
  CAPSTONE_TRY(tools.headers, find_cuda_headers(resources));
  CAPSTONE_TRY(tools.version, compiler_version(tools.compiler));
  const fs::path emulator = resources.share / "harness" / "emulator";
  tools.shims = emulator / "include";
  tools.runtime = emulator / "runtime";
  const VariantParts parts = parts_of(variant);
  tools.library = resources.libexec / parts.library;
  tools.flags = kCompileFlags;
  tools.flags.insert(tools.flags.end(), parts.flags.begin(), parts.flags.end());
  tools.rewriter = resources.libexec / "capstone-rewrite";
  auto digest_of = [&](const std::vector<fs::path>& files) -> Result<std::string> {
    DigestBuilder digest;
    digest.add("compiler", tools.version).add("processor", processor_features());
    for (const fs::path& part : files) {
      auto hash = sha256_file(part);
      if (!hash)
        return fail("a part of the emulator is missing", part.string(), "reinstall capstone",
                    ExitCode::kEnvironment);
      digest.add(part.filename().string(), *hash);
    }
    return digest.hex();
  };
  std::vector<fs::path> own = {resources.libexec / parts_of(BuildVariant::kFast).library,
                               tools.shims / "capstone_emulator/core.h",
                               tools.shims / "capstone_emulator/textures.h",
                               tools.runtime / "streams.h",
                               tools.runtime / "tensor_map.h",
                               tools.headers / "cuda_runtime_api.h"};
  for (const char* source : kOwnSources) own.push_back(tools.runtime / fmt::format("{}.cpp", source));
  CAPSTONE_TRY(tools.own_identity, digest_of(own));
  CAPSTONE_TRY(const std::string programs, digest_of({tools.library, tools.rewriter}));
  tools.identity = DigestBuilder()
                       .add("own", tools.own_identity)
                       .add("programs", programs)
                       .add("flags", join(tools.flags, " "))
                       .add("warnings", join(kWarnings, " "))
                       .hex();
  return tools;
}

/// A folder of our own below the cache that is removed with all it holds.
class ScratchFolder {
 public:
  static Result<ScratchFolder> create(const fs::path& parent) {
    std::random_device random;
    fs::path path = parent / fmt::format("tmp-{}-{:08x}{:08x}", ::getpid(), random(), random());
    CAPSTONE_CHECK(make_folders(path));
    return ScratchFolder(std::move(path));
  }
  ScratchFolder(ScratchFolder&& other) noexcept : path_(std::move(other.path_)) { other.path_.clear(); }
  ScratchFolder& operator=(ScratchFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  explicit ScratchFolder(fs::path path) : path_(std::move(path)) {}
  fs::path path_;
};

/// Compiles one of our own sources to an object that later builds reuse, those of other variants, too.
Result<fs::path> cached_object(const Toolchain& tools, const Resources& resources, const fs::path& cache,
                               const fs::path& scratch, const std::string& name, const std::string& text,
                               const std::string& standard) {
  const std::string digest = DigestBuilder().add("tools", tools.own_identity).add(name, text).hex();
  const fs::path folder = cache / "objects", object = folder / (name + "-" + digest.substr(0, 32) + ".o");
  if (use_cached(object)) return object;
  static std::mutex one_at_a_time;  // the variants of a candidate are built at the same time
  const std::lock_guard lock(one_at_a_time);
  if (use_cached(object)) return object;
  CAPSTONE_CHECK(make_folders(folder));
  const fs::path source = scratch / (name + ".cpp"), fresh = scratch / (name + ".o");
  CAPSTONE_CHECK(write_file_atomic(source, text));
  std::vector<std::string> argv = {tools.compiler.string(), standard, "-O1", "-w", "-fno-pie", "-fno-pic"};
  for (const std::string& flag : tools.header_flags(false)) argv.push_back(flag);
  argv.insert(argv.end(),
              {"-I", tools.runtime.parent_path().string(), "-c", source.string(), "-o", fresh.string()});
  const CompilerStep step{.argv = std::move(argv), .cwd = scratch, .work = scratch, .read = {}};
  CAPSTONE_TRY(ProcessResult result, run_compiler(step, nullptr, resources));
  if (!result.ok())
    return fail("capstone's own source '" + name + ".cpp' does not compile with these CUDA headers",
                tools.headers.string(),
                trim(result.err).empty() ? explain_end(result, step) : result.err.substr(0, 2000),
                ExitCode::kInternal);
  std::error_code code;
  fs::rename(fresh, object, code);
  if (code)
    return fail("cannot keep an object in the cache: " + code.message(), object.string(), {},
                ExitCode::kEnvironment);
  return object;
}

/// What every program is linked with in addition to the library.
Result<std::vector<fs::path>> objects_of_emulator(const Toolchain& tools, const Resources& resources,
                                                  const fs::path& cache, const fs::path& scratch) {
  auto compiled = [&](const std::string& name, const std::string& text) {
    return cached_object(tools, resources, cache, scratch, name, text, "-std=gnu++17");
  };
  std::vector<fs::path> objects;
  CAPSTONE_TRY(fs::path boundary,
               compiled("end_of_candidate", "extern \"C\" void capstone_emu_end_of_candidate() {}\n"));
  objects.push_back(std::move(boundary));  // behind the candidate's code, before ours (runtime/faults.cpp)
  for (const std::string name : kOwnSources) {
    CAPSTONE_TRY(std::string text, read_file(tools.runtime / (name + ".cpp")));
    CAPSTONE_TRY(fs::path object, compiled(name, text));
    objects.push_back(std::move(object));
  }
  return objects;
}

/// The user's path of a file that the compiler named relative to the source's folder.
std::string user_path(const fs::path& source, const std::string& file) {
  return fs::path(file).is_absolute() ? file : (source.parent_path() / file).string();
}

bool of_pytorch(std::string_view header) {
  for (std::string_view folder : {"torch/", "ATen/", "c10/", "pybind11/"})
    if (header.starts_with(folder)) return true;
  return false;
}

bool belongs_to_library(std::string_view name) {
  for (std::string_view prefix : {"cublas", "cudnn", "cufft", "curand", "cusparse", "cusolver", "nccl",
                                  "nvrtc", "cub/", "thrust/", "cutlass/", "cute/", "cuda/"})
    if (name.starts_with(prefix)) return true;
  return of_pytorch(name);
}

/// Headers of CCCL below cuda/. A name that no Toolkit has is the user's mistake, and the compiler's message
/// says so.
bool exists_below_cuda(std::string_view name, const fs::path& headers) {
  static const std::set<std::string_view> kNames = {"annotated_ptr",
                                                    "atomic",
                                                    "barrier",
                                                    "bit",
                                                    "cmath",
                                                    "discard_memory",
                                                    "functional",
                                                    "iterator",
                                                    "latch",
                                                    "mdspan",
                                                    "memory",
                                                    "memory_resource",
                                                    "numeric",
                                                    "pipeline",
                                                    "ptx",
                                                    "semaphore",
                                                    "stream_ref",
                                                    "type_traits",
                                                    "utility",
                                                    "version",
                                                    "warp",
                                                    "work_stealing",
                                                    "std/array",
                                                    "std/atomic",
                                                    "std/barrier",
                                                    "std/bit",
                                                    "std/bitset",
                                                    "std/cassert",
                                                    "std/ccomplex",
                                                    "std/cfloat",
                                                    "std/chrono",
                                                    "std/climits",
                                                    "std/cmath",
                                                    "std/complex",
                                                    "std/concepts",
                                                    "std/cstddef",
                                                    "std/cstdint",
                                                    "std/cstdlib",
                                                    "std/cstring",
                                                    "std/ctime",
                                                    "std/expected",
                                                    "std/functional",
                                                    "std/initializer_list",
                                                    "std/inplace_vector",
                                                    "std/iterator",
                                                    "std/latch",
                                                    "std/limits",
                                                    "std/linalg",
                                                    "std/mdspan",
                                                    "std/memory",
                                                    "std/numbers",
                                                    "std/numeric",
                                                    "std/optional",
                                                    "std/ranges",
                                                    "std/ratio",
                                                    "std/semaphore",
                                                    "std/source_location",
                                                    "std/span",
                                                    "std/tuple",
                                                    "std/type_traits",
                                                    "std/utility",
                                                    "std/variant",
                                                    "std/version"};
  std::error_code ignored;
  for (const fs::path& folder : {headers, headers / "cccl"})
    if (fs::exists(folder / name, ignored)) return true;
  name.remove_prefix(std::string_view("cuda/").size());
  return kNames.contains(name) || name.starts_with("__") || name.starts_with("std/__") ||
         name.starts_with("experimental/");
}

/// 80 of "sm_80".
int architecture_number(std::string_view arch) {
  int number = 0;
  for (const char c : arch)
    if (c >= '0' && c <= '9') number = 10 * number + (c - '0');
  return number;
}

/// One build, step by step; `artifact_` is what the caller gets.
class EmulatedBuild {
 public:
  /// @param fallback  another architecture can be tried: kernels that this one's guards emptied stop the
  /// build
  EmulatedBuild(const BuildRequest& request, int cuda_arch, bool fallback, Toolchain tools,
                ScratchFolder scratch, ScratchFolder own_scratch)
      : request_(request),
        cuda_arch_(cuda_arch),
        fallback_(fallback),
        tools_(std::move(tools)),
        scratch_(std::move(scratch)),
        own_scratch_(std::move(own_scratch)),
        cache_(request.resources->cache / "emulated") {}

  Result<EmulatedArtifact> run() {
    const auto begin = std::chrono::steady_clock::now();
    if (request_.problem) {
      header_ = launch_header(*request_.problem);
      adapter_ = adapter_source(*request_.problem);
      CAPSTONE_CHECK(make_folders(scratch_.path() / "problem"));
      CAPSTONE_CHECK(write_file_atomic(header_path(), header_));
    }
    auto own = std::async(std::launch::async, [this] { return own_objects(); });
    auto candidate = build_candidate();
    auto objects = own.get();
    CAPSTONE_CHECK(std::move(candidate));
    CAPSTONE_TRY(std::vector<fs::path> linked, std::move(objects));
    if (compiled_) CAPSTONE_CHECK(link(linked));
    finish_messages();
    for (const auto& other : others_) other->hand_messages_to(artifact_);
    artifact_.result.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return std::move(artifact_);
  }

 private:
  /// -std and -fopenmp, which the candidate may choose; nothing older than what the emulator's headers need.
  std::vector<std::string> language_flags() const {
    std::vector<std::string> flags = {"-std=gnu" +
                                      std::max<std::string>(request_.standard, "c++17").substr(1)};
    if (request_.openmp) flags.emplace_back("-fopenmp");
    return flags;
  }
  fs::path header_path() const { return scratch_.path() / "problem" / "launch.h"; }
  fs::path folder() const {
    const fs::path parent = request_.source.parent_path();
    return parent.empty() ? fs::path(".") : parent;
  }
  std::string file_name() const { return request_.source.filename().string(); }
  BuildResult& result() { return artifact_.result; }

  /// One step on the candidate: it reads the source's folder, CUDA's headers and the emulator, and writes to
  /// the scratch folder.
  CompilerStep step(std::vector<std::string> argv) const {
    const fs::path source_folder = fs::absolute(folder());
    CompilerStep one{.argv = std::move(argv),
                     .cwd = source_folder,
                     .work = fs::absolute(scratch_.path()),
                     .read = {source_folder, tools_.headers, tools_.shims, tools_.library, tools_.rewriter}};
    one.yields = request_.variant != BuildVariant::kFast;  // the first verdict needs the fast build alone
    for (const fs::path& folder : request_.include_folders) one.read.push_back(fs::absolute(folder));
    if (!tools_.cutlass.empty()) one.read.push_back(tools_.cutlass);
    return one;
  }
  Result<ProcessResult> run_step(const CompilerStep& one) const {
    return run_compiler(one, request_.sandbox, *request_.resources);
  }

  Result<std::vector<fs::path>> own_objects() {
    CAPSTONE_TRY(std::vector<fs::path> objects,
                 objects_of_emulator(tools_, *request_.resources, cache_, own_scratch_.path()));
    if (!request_.problem) return objects;
    CAPSTONE_TRY(fs::path adapter, cached_object(tools_, *request_.resources, cache_, own_scratch_.path(),
                                                 "adapter", adapter_, "-std=gnu++17"));
    objects.push_back(std::move(adapter));
    return objects;
  }

  Result<void> build_candidate() {
    CAPSTONE_TRY(bool preprocessed, preprocess());
    if (!preprocessed) return {};
    for (const fs::path& source : request_.more_sources) {
      CAPSTONE_CHECK(add_source(source));
      CAPSTONE_TRY(bool also, others_.back()->preprocess());
      if (!also) return {};
    }
    CAPSTONE_TRY(bool hit, look_up());
    if (hit) return {};
    CAPSTONE_CHECK(rewrite_and_compile());
    for (const auto& other : others_) {
      if (compiled_) CAPSTONE_CHECK(other->rewrite_and_compile());
      compiled_ = compiled_ && other->compiled_;
    }
    return {};
  }
  Result<void> rewrite_and_compile() {
    CAPSTONE_TRY(bool rewritten, rewrite());
    if (!rewritten) return {};
    return compile();
  }

  /// Another source of the program gets an object in the same way.
  Result<void> add_source(const fs::path& source) {
    std::error_code ignored;
    if (!fs::is_regular_file(source, ignored))
      return fail("no such source file", source.string(), {}, ExitCode::kUsage);
    BuildRequest request = request_;
    request.source = source;
    request.more_sources.clear();
    CAPSTONE_TRY(ScratchFolder scratch, ScratchFolder::create(cache_));
    CAPSTONE_TRY(ScratchFolder own_scratch, ScratchFolder::create(cache_));
    other_requests_.push_back(std::make_unique<BuildRequest>(std::move(request)));
    others_.push_back(std::make_unique<EmulatedBuild>(*other_requests_.back(), cuda_arch_, fallback_, tools_,
                                                      std::move(scratch), std::move(own_scratch)));
    return {};
  }
  /// Of a source that is not the first one: errors are the program's.
  void hand_messages_to(EmulatedArtifact& artifact) {
    finish_messages();
    artifact.result.log += result().log;
    if (!artifact.result.ok && !artifact.result.first_error)
      artifact.result.first_error = result().first_error;
    if (artifact.not_judgeable.empty()) artifact.not_judgeable = artifact_.not_judgeable;
  }

  /// Does the text, or what the preprocessor said of it, come to a header of Thrust?
  static bool mentions_thrust(const std::string& text) {
    return text.find("fatal error: thrust/") != std::string::npos ||
           text.find("/thrust/detail/config.h\"") != std::string::npos;
  }

  /// @return false when the source is at fault; the messages say how.
  Result<bool> preprocess() {
    CAPSTONE_TRY(ProcessResult process, run_preprocessor(false));
    if (!process.ok() && lacks_cutlass(process.err)) {
      const auto headers = find_cutlass_headers(*request_.resources);
      std::error_code ignored;
      if (!headers || !fs::exists(tools_.cccl() / "cuda/std/utility", ignored)) {
        note_failure(process, step({tools_.compiler.string()}));
        if (result().first_error)
          refuse(*result().first_error, headers ? "CUTLASS's headers need CCCL, which is not in " +
                                                      tools_.headers.string() + ": install the CUDA Toolkit"
                                                : headers.error().what + "; " + headers.error().hint);
        return false;
      }
      tools_.cutlass = *headers;
      CAPSTONE_TRY(process, run_preprocessor(false));
    }
    std::string seen = process.err;
    if (process.ok() && !request_.problem) {
      CAPSTONE_TRY(seen, read_file(preprocessed()));
    }
    if (!request_.problem && mentions_thrust(seen)) {
      CAPSTONE_TRY(process, run_preprocessor(true));
    }
    if (process.ok()) return true;
    note_failure(process, step({tools_.compiler.string()}));
    if (result().first_error) {
      const std::string& text = result().first_error->text;
      const std::size_t end = text.find(": No such file");
      const std::string header = text.substr(0, end);
      if (end != std::string::npos && belongs_to_library(header) &&
          (!header.starts_with("cuda/") || exists_below_cuda(header, tools_.headers)))
        refuse(*result().first_error,
               request_.problem
                   ? "library header '" + header + "' cannot be used on the CPU backend" +
                         (of_pytorch(header) ? "; a PyTorch extension is judged as a .py that loads it" : "")
               : of_pytorch(header) ? "header '" + header +
                                          "' is not in the stand-in for PyTorch: call what it has in "
                                          "Python, around the extension"
                                    : fmt::format("library header '{}' is not among the CUDA headers in {}",
                                                  header, tools_.headers.string()));
    }
    return false;
  }

  Result<ProcessResult> run_preprocessor(bool with_thrust) {
    // The text is the same for every build variant: no macro tells the candidate that it is instrumented.
    std::vector<std::string> argv = {tools_.compiler.string()};
    for (const std::string& flag : language_flags()) argv.push_back(flag);
    argv.insert(argv.end(), kCompileFlags.begin(), kCompileFlags.end());
    // Without the folder's name, which -g1 would write into the text: a copy of the project finds the build.
    argv.insert(argv.end(), {"-E", "-fno-working-directory", "-x", "c++", "-DCAPSTONE_EMULATED=1",
                             fmt::format("-DCAPSTONE_CUDA_ARCH={}", cuda_arch_), "-I."});
    for (const fs::path& folder : request_.include_folders)
      argv.insert(argv.end(), {"-I", fs::absolute(folder).string()});
    for (const std::string& definition : request_.definitions) argv.push_back("-D" + definition);
    if (!request_.problem)
      for (const std::string& flag : tools_.library_flags(with_thrust)) argv.push_back(flag);
    if (!tools_.cutlass.empty())
      for (const std::string& flag : tools_.cutlass_flags(cuda_arch_)) argv.push_back(flag);
    for (const std::string& flag : tools_.header_flags(true)) argv.push_back(flag);
    argv.insert(argv.end(), {"-include", (tools_.shims / "capstone_emulator.h").string()});
    // CUDA's headers that launch.h includes come before it: all that comes before it is precompiled.
    for (const std::string& header : included_first(header_)) {
      std::error_code ignored;
      if (fs::exists(tools_.headers / header, ignored)) argv.insert(argv.end(), {"-include", header});
    }
    if (request_.problem) argv.insert(argv.end(), {"-include", header_path().string()});
    argv.insert(argv.end(), {file_name(), "-o", preprocessed().string()});
    result().command = join(argv, " ") + " && capstone-rewrite && " + join(compile_command(rewritten()), " ");
    return run_step(step(argv));
  }

  fs::path preprocessed() const { return scratch_.path() / "candidate.ii"; }
  fs::path rewritten() const { return scratch_.path() / "rewritten.ii"; }
  fs::path object() const { return scratch_.path() / "candidate.o"; }

  Result<bool> look_up() {
    CAPSTONE_TRY(std::string text, read_file(preprocessed()));
    for (const auto& other : others_) {
      CAPSTONE_TRY(const std::string more, read_file(other->preprocessed()));
      text += more;
    }
    // The header lies in a folder whose name changes from build to build.
    text = replace_all(std::move(text), scratch_.path().string(), "build");
    digest_ = DigestBuilder()
                  .add("tools", tools_.identity)
                  .add("adapter", request_.problem ? adapter_ : "program")
                  .add("source", text)
                  .add("language", join(language_flags(), " "))
                  .add("emptied kernels", fallback_ ? "refused" : "allowed")
                  .add("isolated", request_.sandbox && request_.sandbox->isolated() ? "yes" : "no")
                  .hex();
    std::error_code ignored;
    if (fs::exists(mark_of_more(), ignored)) {
      use_cached(cache_ / digest_);
      add_neighbours();
    }
    artifact_.program = cache_ / digest_ / "worker";
    result().cached = result().ok = use_cached(cache_ / digest_) && fs::exists(artifact_.program, ignored);
    if (auto said = read_file(messages(cache_ / digest_)); result().ok && said) result().log = *said;
    if (!result().ok) artifact_.program.clear();
    return result().ok;
  }

  /// What the compiler said of a program that it made.
  static fs::path messages(const fs::path& entry) { return entry / "messages"; }

  /// What the assembler reads is not in the preprocessed text, and no search there finds every way to say it.
  /// The assembler lists what it has read. Where that is more than the source, this mark lies where the build
  /// would be looked up, and its place depends on all that lies in the source's folder.
  fs::path mark_of_more() const { return cache_ / digest_ / "reads_more"; }
  fs::path assembler_read() const { return scratch_.path() / "assembler.d"; }

  void add_neighbours() {
    digest_ =
        DigestBuilder().add("source", digest_).add("neighbours", digest_of_neighbours(request_.source)).hex();
    with_neighbours_ = true;
  }

  Result<void> note_what_the_assembler_read() {
    CAPSTONE_TRY(const std::string list, read_file(assembler_read()));
    bool more = false;
    for (const std::string& line : split(list.substr(std::min(list.find(": ") + 1, list.size())), '\n'))
      for (const std::string& word : split(line, ' '))
        more |= !word.empty() && word != "\\" && word != file_name() &&
                !word.starts_with(scratch_.path().string());
    if (!more || with_neighbours_) return {};
    CAPSTONE_CHECK(make_folders(cache_ / digest_));
    CAPSTONE_CHECK(write_file_atomic(mark_of_more(), ""));
    add_neighbours();
    return {};
  }

  Result<bool> rewrite() {
    std::vector<std::string> argv = {tools_.rewriter.string(), preprocessed().string(), rewritten().string()};
    argv.insert(argv.begin() + 1, fmt::format("--arch={}", cuda_arch_));
    if (!request_.problem) argv.insert(argv.begin() + 1, "--program");
    if (fallback_) argv.insert(argv.begin() + 1, "--refuse-emptied");
    if (request_.variant == BuildVariant::kInstrumented) argv.insert(argv.begin() + 1, "--observed");
    const CompilerStep rewriting = step(std::move(argv));
    CAPSTONE_TRY(ProcessResult process, run_step(rewriting));
    if (process.ok()) return true;
    if (process.end != ProcessResult::End::kExited &&
        process.end != ProcessResult::End::kInterrupted) {  // too long, too much memory: the source's doing
      note_failure(process, rewriting);
      return false;
    }
    if (process.end != ProcessResult::End::kExited || process.status != 1)
      return fail("the rewriter failed", file_name(),
                  trim(process.err).empty() ? explain_end(process, rewriting) : process.err,
                  ExitCode::kInternal);
    for (const std::string& line : split(process.out, '\n')) {
      if (line.empty()) continue;
      const Json finding = parse_json(line);
      if (finding.is_discarded()) continue;
      take_finding(finding);
    }
    return false;
  }

  void take_finding(const Json& finding) {
    const CompilerMessage message{finding.value("file", std::string()), finding.value("line", 0), 0,
                                  finding.value("message", std::string())};
    const bool refused = finding.value("kind", std::string()) == "not_judgeable";
    const std::string hint = finding.value("hint", std::string());
    result().log +=
        fmt::format("{}:{}: {}: {}{}\n", message.file, message.line, refused ? "not judgeable" : "error",
                    message.text, hint.empty() ? "" : "; " + hint);
    if (refused)
      refuse(message, message.text + (hint.empty() ? "" : "; " + hint));
    else if (!result().first_error)
      result().first_error = message;
  }

  void refuse(const CompilerMessage& where, const std::string& reason) {
    if (artifact_.not_judgeable.empty())
      artifact_.not_judgeable =
          fmt::format("{}:{}: {}", user_path(request_.source, where.file), where.line, reason);
  }

  std::vector<std::string> compile_command(const fs::path& text) const {
    std::vector<std::string> argv = {tools_.compiler.string()};
    for (const std::string& flag : language_flags()) argv.push_back(flag);
    argv.insert(argv.end(), tools_.flags.begin(), tools_.flags.end());
    if (request_.variant == BuildVariant::kFast) {
      std::erase(argv, "-w");
      argv.insert(argv.end(), kWarnings.begin(), kWarnings.end());
    }
    argv.insert(argv.end(), {"-x", "c++-cpp-output", "-c", text.string(), "-o", object().string(),
                             fmt::format("-fdebug-prefix-map={}=.", fs::absolute(folder()).string()),
                             "-Xassembler", "--MD", "-Xassembler", assembler_read().string()});
    return argv;
  }

  /// The precompiled headers with which the text begins; empty: there are none. Those that are wanted for the
  /// first time are only marked: making them takes as long as four builds without them.
  Result<fs::path> precompiled(const std::string& headers) {
    const std::string digest = DigestBuilder()
                                   .add("tools", tools_.identity)
                                   .add("language", join(language_flags(), " "))
                                   .add("headers", headers)
                                   .hex();
    const fs::path folder = cache_ / "objects", made = folder / ("headers-" + digest.substr(0, 32) + ".gch"),
                   mark = fs::path(made).replace_extension("wanted");
    std::error_code code;
    if (!use_cached(made)) {
      CAPSTONE_CHECK(make_folders(folder));
      if (!use_cached(mark)) {
        CAPSTONE_CHECK(write_file_atomic(mark, ""));
        return fs::path();
      }
      const fs::path work = fs::absolute(own_scratch_.path()), text = work / "headers.ii",
                     fresh = work / "headers.gch";
      CAPSTONE_CHECK(write_file_atomic(text, headers));
      std::vector<std::string> argv = {tools_.compiler.string()};
      for (const std::string& flag : language_flags()) argv.push_back(flag);
      argv.insert(argv.end(), tools_.flags.begin(), tools_.flags.end());
      argv.insert(argv.end(), {"-x", "c++-header", "-fpreprocessed", text.string(), "-o", fresh.string()});
      CompilerStep making = step(std::move(argv));
      making.cwd = making.work = work;
      making.read.clear();
      CAPSTONE_TRY(ProcessResult process, run_step(making));
      // Where this compiler cannot do it, an empty file says so.
      if (!process.ok() || !is_own_file(fresh)) CAPSTONE_CHECK(write_file_atomic(fresh, ""));
      fs::rename(fresh, made, code);
    }
    return fs::file_size(made, code) > 0 && !code ? made : fs::path();
  }

  /// The text with its headers left out, which are precompiled; empty: they are not.
  Result<fs::path> brief_text() {
    CAPSTONE_TRY(const std::string text, read_file(rewritten()));
    const auto parts = split_headers(text, request_.problem ? header_path().string() : file_name());
    if (!parts) return fs::path();
    CAPSTONE_TRY(precompiled_, precompiled(parts->headers));
    if (precompiled_.empty()) return fs::path();
    const fs::path brief = scratch_.path() / "brief.ii";
    CAPSTONE_CHECK(write_file_atomic(brief, with_precompiled(*parts, fs::absolute(precompiled_))));
    return brief;
  }

  Result<void> compile() {
    CAPSTONE_TRY(const fs::path brief, brief_text());
    CompilerStep compiling = step(compile_command(brief.empty() ? rewritten() : brief));
    if (!brief.empty()) compiling.read.push_back(fs::absolute(precompiled_));
    CAPSTONE_TRY(ProcessResult process, run_step(compiling));
    if (!brief.empty() && !process.ok() && process.end == ProcessResult::End::kExited) {
      // Messages come from the whole text: its lines are those of the source.
      compiling = step(compile_command(rewritten()));
      CAPSTONE_TRY(process, run_step(compiling));
    }
    result().log += process.err;
    compiled_ = process.ok();
    if (!compiled_) {
      note_failure(process, compiling);
    } else {
      CAPSTONE_CHECK(note_what_the_assembler_read());
      if (request_.problem) CAPSTONE_CHECK(refuse_stand_ins());
    }
    if (compiled_ && parts_of(request_.variant).own_calls) return redirect_calls();
    return {};
  }

  struct Symbol {
    std::string name;
    char type;  // as nm prints it
    bool undefined() const { return type == 'U' || type == 'w' || type == 'v'; }
  };
  struct Symbols {
    std::vector<Symbol> library, object;
  };
  /// The symbols of the emulator's library and of the candidate's object, which others can use.
  Result<Symbols> symbols() {
    const auto nm = find_program("nm", request_.resources->path_variable);
    if (!nm)
      return fail("no nm found", request_.resources->path_variable, "install binutils (apt install binutils)",
                  ExitCode::kEnvironment);
    const CompilerStep listing =
        step({nm->string(), "--extern-only", "-P", tools_.library.string(), object().string()});
    CAPSTONE_TRY(ProcessResult process, run_step(listing));
    if (!process.ok())
      return fail("nm failed", file_name(),
                  trim(process.err).empty() ? explain_end(process, listing) : process.err,
                  ExitCode::kInternal);
    Symbols symbols;
    // The object comes last, and all behind its heading is its own: a name may hold anything, a line feed and
    // another heading, too.
    std::vector<Symbol>* file = &symbols.library;
    for (const std::string& line : split(process.out, '\n')) {
      const std::vector<std::string> words = split(line, ' ');
      if (line == object().string() + ":") file = &symbols.object;
      if (words.size() >= 2 && words[1].size() == 1) file->push_back({words[0], words[1][0]});
    }
    return symbols;
  }

  /// A function of the candidate must not stand in for one that the judge's part of the program calls, main()
  /// above all: `int other() __asm__("main")`.
  Result<void> refuse_stand_ins() {
    CAPSTONE_TRY(const Symbols listed, symbols());
    std::vector<std::string> suspects;
    for (const Symbol& symbol : listed.object) {
      if (symbol.undefined() || symbol.name == "capstone_emu_arch") continue;
      const bool merged =
          symbol.name.starts_with("_Z") && (symbol.type == 'W' || symbol.type == 'V' || symbol.type == 'u');
      if (!merged)
        suspects.push_back(symbol.name);  // templates and inline functions are in both, and the same
    }
    std::set<std::string> used = {"main", "_start", "_init", "_fini"};
    for (const Symbol& symbol : listed.library)
      if (symbol.undefined()) used.insert(symbol.name);
    for (const std::string& name : suspects) {
      if (!used.contains(name)) continue;
      result().first_error = CompilerMessage{
          file_name(), 0, 0,
          "the file defines the symbol '" + name + "', which the judge's part of the program uses"};
      result().log += "hint: rename the function or variable, or make it static\n";
      compiled_ = false;
      return {};
    }
    return {};
  }

  /// malloc, new, memcpy and the like of the candidate, and of nothing else in the program, become functions
  /// of the emulator.
  Result<void> redirect_calls() {
    const auto objcopy = find_program("objcopy", request_.resources->path_variable);
    if (!objcopy)
      return fail("no objcopy found", request_.resources->path_variable,
                  "install binutils (apt install binutils)", ExitCode::kEnvironment);
    std::vector<std::string> argv = {objcopy->string()};
    for (const std::string name : {"malloc", "calloc", "free", "_Znwm", "_Znam", "_ZdlPv", "_ZdlPvm",
                                   "_ZdaPv", "_ZdaPvm", "memcpy", "memmove", "memset"})
      argv.insert(argv.end(), {"--redefine-sym", name + "=capstone_emu_" + name});
    argv.push_back(object().string());
    const CompilerStep redirecting = step(std::move(argv));
    CAPSTONE_TRY(ProcessResult process, run_step(redirecting));
    if (process.ok()) return {};
    return fail("objcopy failed", file_name(),
                trim(process.err).empty() ? explain_end(process, redirecting) : process.err,
                ExitCode::kInternal);
  }

  void note_failure(const ProcessResult& process, const CompilerStep& failed) {
    if (result().log.find(process.err) == std::string::npos) result().log += process.err;
    result().first_error = first_compiler_error(process.err);
    if (!result().first_error) {
      result().log += explain_end(process, failed) + "\n";
      result().first_error = CompilerMessage{file_name(), 0, 0, explain_end(process, failed)};
      return;
    }
    const std::string& text = result().first_error->text;
    const std::size_t refused = text.find(kUnsupportedCall);
    if (refused != std::string::npos)
      return refuse(*result().first_error, text.substr(refused + kUnsupportedCall.size()));
    const bool conflict = text.find("conflicting declaration") != std::string::npos ||
                          text.find("ambiguating new declaration") != std::string::npos;
    for (std::string_view name : {"launch", "workspace_bytes", "prepare", "prepared_bytes"}) {
      if (!conflict || text.find(" " + std::string(name) + "(") == std::string::npos) continue;
      result().first_error->text = fmt::format(
          "the signature of {}() differs from problem/launch.h, which has: {}", name, declaration_of(name));
      result().log += "hint: copy the declaration from problem/launch.h\n";
      return;
    }
  }

  /// One declaration of launch.h, comments left out, on one line.
  std::string declaration_of(std::string_view name) const {
    std::string text;
    for (std::string line : split(header_, '\n')) text += line.substr(0, line.find("//")) + " ";
    const std::size_t at = text.find(" " + std::string(name) + "(");
    if (at == std::string::npos) return "no such function";
    const std::size_t end = text.find(';', at);
    std::size_t begin = text.find_last_of(";}{#", at);
    const std::size_t external = text.rfind("extern", at);
    if (external != std::string::npos && (begin == std::string::npos || external > begin))
      begin = external;
    else if (begin != std::string::npos)
      ++begin;
    std::string words;
    for (const std::string& word : split(text.substr(begin, end - begin), ' '))
      if (!word.empty()) words += (words.empty() ? "" : " ") + word;
    return words;
  }

  Result<void> link(const std::vector<fs::path>& objects) {
    const fs::path program = scratch_.path() / "worker";
    std::vector<std::string> argv = {tools_.compiler.string(), "-no-pie", object().string()};
    for (const auto& other : others_) argv.push_back(other->object().string());
    for (const fs::path& part : objects) argv.push_back(part.string());
    // A program that has a main() does not need the worker's, only the report at its end. The C++ library
    // comes first, so that the linker does not take its symbols from our library, together with the worker's
    // main().
    if (!request_.problem) argv.insert(argv.end(), {"-Wl,-u,capstone_emu_program", "-lstdc++"});
    argv.insert(argv.end(), {tools_.library.string(), "-o", program.string(), "-lpthread"});
    if (request_.openmp) argv.emplace_back("-fopenmp");
    CompilerStep linking = step(argv);
    linking.read.insert(linking.read.end(), objects.begin(), objects.end());
    for (const auto& other : others_) linking.read.push_back(other->object());
    CAPSTONE_TRY(ProcessResult process, run_step(linking));
    if (!process.ok()) {
      explain_link_failure(process, linking);
      return {};
    }
    return keep(program);
  }

  void explain_link_failure(const ProcessResult& process, const CompilerStep& linking) {
    result().log += process.err;
    for (const UndefinedReference& missing : undefined_references(process.err)) {
      if (!request_.problem && missing.symbol.starts_with("capstone_")) {  // of the worker's main()
        result().first_error = CompilerMessage{
            file_name(), 0, 0,
            "no source defines main(); functions that Python calls are run by a .py that loads them"};
        result().log = result().first_error->text + "\n";
        return;
      }
      if (missing.symbol == "launch") {
        result().first_error =
            CompilerMessage{file_name(), 0, 0, "the file defines no extern \"C\" void launch(...)"};
        result().log += "hint: define it as problem/launch.h declares it: " + declaration_of("launch") + "\n";
        return;
      }
      const CompilerMessage where{missing.file.empty() ? file_name() : missing.file, missing.line, 0,
                                  "undefined reference to " + missing.symbol};
      if (!result().first_error) result().first_error = where;
      const bool runtime = missing.symbol.starts_with("cuda") ||
                           (missing.symbol.starts_with("cu") && missing.symbol.size() > 2 &&
                            std::isupper(static_cast<unsigned char>(missing.symbol[2])));
      if (belongs_to_library(missing.symbol) || runtime)
        refuse(where, fmt::format("{} call '{}' cannot run on the CPU backend",
                                  runtime ? "CUDA API" : "library", missing.symbol));
    }
    if (!result().first_error)
      result().first_error = CompilerMessage{file_name(), 0, 0, explain_end(process, linking)};
  }

  /// Moves the program to where it is looked up. Another build of the same source may have been faster; fine.
  Result<void> keep(const fs::path& program) {
    if (!is_own_file(program))
      return fail("the build made something that is not a program", file_name(), {}, ExitCode::kUsage);
    const fs::path folder = cache_ / digest_, staged = own_scratch_.path() / "keep";
    CAPSTONE_CHECK(make_folders(staged));
    std::error_code code;
    if (!result().log.empty()) CAPSTONE_CHECK(write_file_atomic(messages(staged), result().log));
    fs::rename(program, staged / "worker", code);
    if (!code) {
      std::error_code race;
      fs::rename(staged, folder, race);
      if (race && !fs::exists(folder / "worker")) code = race;
    }
    if (code)
      return fail("cannot keep the built program: " + code.message(), folder.string(), "is the disk full?",
                  ExitCode::kEnvironment);
    artifact_.program = folder / "worker";
    result().ok = true;
    return {};
  }

  void finish_messages() {
    std::string& log = result().log;
    result().warnings = warnings_of_gcc(log);
    log = replace_all(std::move(log), header_path().string(), "problem/launch.h");
    log = replace_all(std::move(log), scratch_.path().string() + "/", "");
    if (log.size() > kMaxLog) log = log.substr(0, kMaxLog) + "\n… (cut)\n";
    result().command = replace_all(std::move(result().command), scratch_.path().string() + "/", "");
    if (auto& error = result().first_error) {
      error->file = error->file == header_path().string() ? "problem/launch.h"
                                                          : user_path(request_.source, error->file);
    }
  }

  const BuildRequest& request_;
  int cuda_arch_;
  bool fallback_;
  Toolchain tools_;
  ScratchFolder scratch_;      // what the candidate's build may write to
  ScratchFolder own_scratch_;  // objects that other candidates' programs will hold, too
  fs::path cache_;
  std::string header_, adapter_, digest_;
  bool with_neighbours_ = false;  // digest_ depends on the files next to the source, too
  bool compiled_ = false;
  fs::path precompiled_;  // headers of the candidate
  EmulatedArtifact artifact_;
  std::vector<std::unique_ptr<BuildRequest>> other_requests_;  // of the program's other sources
  std::vector<std::unique_ptr<EmulatedBuild>> others_;
};

}  // namespace

Result<std::vector<fs::path>> build_emulator_objects(const Resources& resources) {
  CAPSTONE_TRY(const Toolchain tools, find_toolchain(resources, BuildVariant::kFast));
  const fs::path cache = resources.cache / "emulated";
  CAPSTONE_TRY(const ScratchFolder scratch, ScratchFolder::create(cache));
  return objects_of_emulator(tools, resources, cache, scratch.path());
}

Result<EmulatedArtifact> build_emulated(const BuildRequest& request) {
  std::error_code ignored;
  if (!fs::is_regular_file(request.source, ignored))
    return fail("no such source file", request.source.string(), {}, ExitCode::kUsage);
  CAPSTONE_TRY(const Toolchain tools, find_toolchain(*request.resources, request.variant));
  auto built_for = [&](int cuda_arch, bool fallback) -> Result<EmulatedArtifact> {
    CAPSTONE_TRY(ScratchFolder scratch, ScratchFolder::create(request.resources->cache / "emulated"));
    CAPSTONE_TRY(ScratchFolder own_scratch, ScratchFolder::create(request.resources->cache / "emulated"));
    return EmulatedBuild(request, cuda_arch, fallback, tools, std::move(scratch), std::move(own_scratch))
        .run();
  };
  CAPSTONE_TRY(const std::string source, read_file(request.source));
  std::string_view newer = newer_ptx(source);
  if (request.cuda_arch != 0) {
    CAPSTONE_TRY(EmulatedArtifact built, built_for(request.cuda_arch, false));
    if (!newer.empty() && request.cuda_arch / 100 == kTensorMemoryArch / 100)
      built.arch_note = never_run(newer);
    return built;
  }
  auto allows = [&](int cuda_arch) {
    return !request.problem || architecture_number(request.problem->arch) <= cuda_arch / 10;
  };
  if (!allows(kOlderArch) && !allows(kTensorMemoryArch)) return built_for(kArch, false);
  // First with every kernel whole; then with kernels that guards emptied, which this architecture may never
  // launch.
  std::string reason;
  std::optional<EmulatedArtifact> first;
  for (const bool whole : {true, false})
    for (const int cuda_arch : {kArch, kTensorMemoryArch, kOlderArch}) {
      if (cuda_arch != kArch && !allows(cuda_arch)) continue;
      if (newer.empty()) newer = newer_ptx(reason);
      if (cuda_arch == kTensorMemoryArch && newer.empty()) continue;
      CAPSTONE_TRY(EmulatedArtifact built, built_for(cuda_arch, whole));
      if (built.not_judgeable.empty() && (built.result.ok || cuda_arch == kArch)) {
        if (cuda_arch != kArch)
          built.arch_note = fmt::format("judged as sm_{}: as sm_{}, {}", cuda_arch / 10, kArch / 10, reason);
        if (cuda_arch == kTensorMemoryArch) built.arch_note += "; " + never_run(newer);
        return built;
      }
      if (reason.empty()) reason = built.not_judgeable;
      if (cuda_arch == kArch) first = std::move(built);
    }
  return std::move(*first);
}

}  // namespace capstone
