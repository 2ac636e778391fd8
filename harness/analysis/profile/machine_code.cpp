#include "harness/analysis/profile/machine_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>
#include <set>

#include "harness/analysis/profile/ncu.h"
#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/symbols.h"
#include "harness/base/text.h"
#include "harness/runtime/build/compiler.h"
#include "harness/runtime/build/cuda.h"

namespace capstone {
namespace {

constexpr std::size_t kCompilerMemory = std::size_t{8} << 30;  // [B]

const std::set<std::string, std::less<>> kMatrixMoves{"LDSM", "STSM"},
    kBulkMoves{"UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED"},
    kMoves{"LD",  "LDG",    "LDS",  "LDL",   "ST",    "STG", "STS",
           "STL", "LDGSTS", "ATOM", "ATOMG", "ATOMS", "RED", "REDG"},
    kTensorInstructions{"HMMA", "HGMMA", "IMMA",    "IGMMA",   "QMMA",    "QGMMA",  "OMMA",
                        "DMMA", "BMMA",  "UTCHMMA", "UTCIMMA", "UTCQMMA", "UTCOMMA"};
// The instructions to search for in the listing. The pattern matches more than the sets above ("LDGDEPBAR"),
// so that every name is found whole.
constexpr const char* kOpcodes = " (LD|ST|ATOM|RED|UTMA|UBLK|[HIQODB]G?MMA|UTC)[.A-Za-z0-9_]*";

// "LDG.E.128.CONSTANT" → "LDG.128": the bits per lane. A name without a width moves 32 bits; an instruction
// that one thread issues for a whole block has none.
std::string short_name(const std::vector<std::string>& parts) {
  if (kBulkMoves.contains(parts[0])) return parts[0];
  // One, two or four matrices of 8 x 8 elements of 16 bits: "LDSM.16.M88.4".
  if (kMatrixMoves.contains(parts[0]))
    return parts[0] + (parts.back() == "4" ? ".128" : parts.back() == "2" ? ".64" : ".32");
  for (const std::string& part : parts) {
    if (part == "256" || part == "128" || part == "64") return parts[0] + "." + part;
    if (part == "F64" || part == "U64" || part == "S64") return parts[0] + ".64";
    if (part == "U8" || part == "S8") return parts[0] + ".8";
    if (part == "U16" || part == "S16") return parts[0] + ".16";
  }
  return parts[0] + ".32";
}

}  // namespace

std::vector<KernelProfile> read_ptxas(const std::string& log) {
  static const std::regex entry(R"(Compiling entry function '([^']+)')"),
      properties(R"(Function properties for (\S+))"),
      frame(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)"),
      used(R"(Used (\d+) registers)"), shared(R"((\d+) bytes smem)");
  std::vector<KernelProfile> kernels;
  std::string of;  // the properties that follow belong to this kernel or to a function that it calls
  for (const std::string& line : split(log, '\n')) {
    if (line.size() > 4000) continue;
    std::smatch m;
    if (std::regex_search(line, m, entry)) {
      kernels.emplace_back();
      kernels.back().kernel = of = m[1];
    }
    if (std::regex_search(line, m, properties)) of = m[1];
    if (kernels.empty()) continue;
    KernelProfile& k = kernels.back();
    if (of == k.kernel && std::regex_search(line, m, frame)) {
      k.stack_bytes = std::stod(m[1]);
      k.spill_bytes = std::stod(m[2]) + std::stod(m[3]);
    }
    if (!std::regex_search(line, m, used)) continue;
    k.registers = std::stod(m[1]);
    k.static_shared_bytes = std::regex_search(line, m, shared) ? std::stod(m[1]) : 0;
  }
  return kernels;
}

void read_sass(const std::string& listing, std::vector<KernelProfile>& kernels) {
  KernelProfile* into = nullptr;
  for (const std::string& line : split(listing, '\n')) {
    if (line.size() > 4000) continue;
    if (const auto at = line.find("Function : "); at != line.npos) {
      const std::string name(trim(std::string_view(line).substr(at + 11)));
      const auto found = std::find_if(kernels.begin(), kernels.end(),
                                      [&](const KernelProfile& k) { return k.kernel == name; });
      into = found == kernels.end() ? nullptr : &*found;
      if (into) into->machine_code_seen = true;
    } else if (into) {
      const std::vector<std::string> parts = split(std::string(trim(line)), '.');
      if (kTensorInstructions.contains(parts[0])) ++into->tensor_instructions[parts[0]];
      if (kMoves.contains(parts[0]) || kMatrixMoves.contains(parts[0]) || kBulkMoves.contains(parts[0]))
        ++into->memory_instructions[short_name(parts)];
    }
  }
}

Result<CompiledKernels> machine_code(const Problem& problem, const fs::path& source, const std::string& arch,
                                     const Resources& resources, const Sandbox* sandbox) {
  CAPSTONE_TRY(const CudaToolkit toolkit, find_toolkit(resources));
  const ScratchFolder scratch(resources.cache / "profile");
  CAPSTONE_CHECK(make_folders(scratch.path()));
  CAPSTONE_CHECK(write_file_atomic(scratch.path() / "launch.h", launch_header(problem)));
  const std::string number = arch.substr(3), target = fmt::format("arch=compute_{0},code=sm_{0}", number);
  std::vector<std::string> argv{toolkit.nvcc.string(),
                                "-std=c++17",
                                "-O3",
                                "-lineinfo",
                                "-gencode",
                                target,
                                "-cubin",
                                "-Xptxas",
                                "-v",
                                "-include",
                                "launch.h",
                                "-I",
                                ".",
                                fs::absolute(source).string(),
                                "-o",
                                "kernel.cubin"};
  if (problem.fast_math) argv.emplace_back("-use_fast_math");
  std::vector<fs::path> read{fs::absolute(source).parent_path(), toolkit.root};
  auto run = [&](std::vector<std::string> command) {
    return run_compiler({.argv = std::move(command),
                         .cwd = scratch.path(),
                         .work = scratch.path(),
                         .read = read,
                         .timeout = std::chrono::minutes(5),
                         .max_memory = kCompilerMemory},
                        sandbox, resources);
  };
  CAPSTONE_TRY(const ProcessResult compiled, run(argv));
  if (!compiled.ok()) {
    const auto error = first_compiler_error(compiled.err + compiled.out);
    if (error && error->text.find("Unsupported gpu architecture") != std::string::npos)
      return fail(fmt::format("nvcc {} does not know the architecture {}", toolkit.version, arch),
                  toolkit.nvcc.string(), "`nvcc --list-gpu-code` lists the architectures that it knows");
    return fail(
        "it does not compile: " + (error ? error->text : std::string("nvcc failed without an error line")),
        error && !error->file.empty() ? fmt::format("{}:{}", error->file, error->line) : source.string(),
        "fix the compiler's first error", ExitCode::kGateOneFailed);
  }
  CompiledKernels result{read_ptxas(compiled.err + compiled.out), {}};
  std::error_code code;
  fs::path cuobjdump = toolkit.nvcc.parent_path() / "cuobjdump";
  if (!fs::exists(cuobjdump, code))
    if (auto found = find_program("cuobjdump", resources.path_variable)) cuobjdump = *found;
  if (fs::exists(cuobjdump, code)) {
    read.push_back(cuobjdump.parent_path());
    // A listing of all instructions may be huge, so only the relevant lines come back.
    const std::string pipeline =
        fmt::format("'{}' -sass kernel.cubin > listing && grep -oE 'Function : .*|{}' listing",
                    replace_all(cuobjdump.string(), "'", ""), kOpcodes);
    CAPSTONE_TRY(const ProcessResult listed, run({"/bin/sh", "-c", pipeline}));
    read_sass(listed.out, result.kernels);
    if (!listed.ok())
      result.no_listing = fmt::format("{} failed: {}", cuobjdump.string(), last_line(listed.err));
  } else {
    result.no_listing =
        "no cuobjdump next to nvcc or on PATH (cuda-cuobjdump and cuda-nvdisasm of the CUDA Toolkit, "
        "nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm on PyPI)";
  }
  for (KernelProfile& kernel : result.kernels) kernel.kernel = demangled(kernel.kernel);
  return result;
}

}  // namespace capstone
