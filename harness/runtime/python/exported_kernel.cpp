#include "harness/runtime/python/exported_kernel.h"

#include <fmt/format.h>

#include <cstring>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/runtime/build/compiler.h"

namespace capstone {
namespace {

constexpr std::chrono::minutes kExport{10};  // Triton compiles a kernel in a few seconds; there may be many
constexpr std::size_t kMostCode = 8u << 20;  // [B] of one kernel

Error worker_error(const WorkerFailure& failure, const PythonWork& work) {
  if (failure.kind == WorkerFailure::Kind::kInterrupted)
    return {"interrupted", {}, {}, ExitCode::kInterrupted};
  const bool environment = failure.report_kind == kNoPyTorch;
  const std::string where = failure.where.empty() ? work.candidate.string() : failure.where;
  return {failure.what, environment ? work.python->program.string() : where, failure.hint,
          environment ? ExitCode::kEnvironment : ExitCode::kGateOneFailed};
}

Json signature_of(const Problem& problem) {
  Json list = Json::array();
  for (const Parameter& p : problem.signature) {
    Json entry{{"name", p.name}, {"role", name_of(p.role)}, {"python", p.python}};
    if (!p.is_scalar()) {
      entry["dtype"] = name_of(p.dtype);
      entry["shape"] = Json::array();
      for (const Expression& extent : p.shape) entry["shape"].push_back(extent.text);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

// A fat binary of one kernel, as the replayer finds it in a build.
Result<std::string> fat_binary(const fs::path& cubin, const std::string& arch, const CudaToolkit& toolkit) {
  const fs::path made = fs::path(cubin).replace_extension(".fatbin");
  std::error_code code;
  fs::remove(made, code);  // a hostile source could have put a link there
  if (!is_own_file(cubin))
    return fail("the process that follows forward() left no device code", cubin.string(), {},
                ExitCode::kGateOneFailed);
  ProcessSpec spec;
  spec.argv = {(toolkit.nvcc.parent_path() / "fatbinary").string(), "-64", "--create=" + made.string(),
               fmt::format("--image3=kind=elf,sm={},file={}", arch.substr(3), cubin.string())};
  CAPSTONE_TRY(const ProcessResult ran, run_process(spec));
  if (!ran.ok())
    return fail("fatbinary failed: " + std::string(trim(to_utf8(ran.err + ran.out))).substr(0, 300),
                spec.argv[0], "it comes with nvcc in the CUDA Toolkit", ExitCode::kEnvironment);
  return read_file(made, kMostCode);
}

std::string array_of(std::size_t index, std::string bytes) {
  bytes.resize((bytes.size() + 7) / 8 * 8);
  std::string text = fmt::format(
      "__attribute__((section(\".nv_fatbin\"), aligned(8), used)) const unsigned long long code_{}[] = {{",
      index);
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, &bytes[at], sizeof word);
    text += fmt::format("{}0x{:x},", at % 48 == 0 ? "\n  " : " ", word);
  }
  return text + "\n};\n";
}

// What every exported launch() uses.
constexpr const char* kSupport = R"(
[[maybe_unused]] std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
[[maybe_unused]] std::int64_t floor_mod(std::int64_t a, std::int64_t b) { return a - floor_div(a, b) * b; }

void must(cudaError_t code) {
  if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

[[maybe_unused]] std::int64_t multiprocessors_here() {
  int device = 0, count = 0;
  must(cudaGetDevice(&device));
  must(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device));
  return count;
}

cudaKernel_t kernel(int index) {
  static cudaKernel_t known[sizeof names / sizeof *names];
  if (!known[index]) {
    cudaLibrary_t library;
    must(cudaLibraryLoadData(&library, codes[index], nullptr, nullptr, 0, nullptr, nullptr, 0));
    must(cudaLibraryGetKernel(&known[index], library, names[index]));
  }
  return known[index];
}

void start(int index, std::int64_t x, std::int64_t y, std::int64_t z, unsigned threads, unsigned shared,
           bool cooperative, bool early, const void** arguments, cudaStream_t stream) {
  const void* function = reinterpret_cast<const void*>(kernel(index));
  if (shared > 48 * 1024)
    must(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)));
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z));
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = stream;
  config.attrs = attributes;
  if (cooperative) {
    attributes[config.numAttrs].id = cudaLaunchAttributeCooperative;
    attributes[config.numAttrs++].val.cooperative = 1;
  }
  if (early) {
    attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
  }
  must(cudaLaunchKernelExC(&config, function, const_cast<void**>(arguments)));
}
)";

// The declaration of launch(), from the header that builds include.
std::string declaration_of(const Problem& problem) {
  const std::string header = launch_header(problem);
  const std::size_t begin = header.find("extern \"C\" void launch(");
  return header.substr(begin, header.find(");", begin) + 1 - begin);
}

std::string source_of(const PythonWork& work, const Json& answer, const std::vector<std::string>& code,
                      const std::string& arch, const std::string& digest) {
  std::string text = fmt::format(
      "{}{} (SHA-256 {}) by capstone export, for `{}`.\n"
      "// Device code by Triton {} for {}; needs nvcc 12.8 or newer. launch() says what forward() did.\n"
      "#include <cuda_runtime.h>\n\n#include <cstdint>\n#include <stdexcept>\n\nnamespace {{\n\n",
      kExportedMark, work.candidate.filename().string(), digest.substr(0, 16), work.problem->id,
      answer.at("triton").get<std::string>(), arch);
  std::vector<std::string> arrays, names;
  for (std::size_t i = 0; i < code.size(); ++i) {
    text += array_of(i, code[i]);
    arrays.push_back(fmt::format("code_{}", i));
    names.push_back(fmt::format("\"{}\"", answer.at("names").at(i).get<std::string>()));
  }
  text += fmt::format("\nconst void* const codes[] = {{{}}};\nconst char* const names[] = {{{}}};\n",
                      join(arrays, ", "), join(names, ", "));
  text += kSupport;
  text += fmt::format(
      "\n}}  // namespace\n\n{} {{\n"
      "  [[maybe_unused]] const std::int64_t multiprocessors = multiprocessors_here();\n{}\n"
      "  throw std::runtime_error(\"the exported kernel has no version for these sizes\");\n}}\n",
      declaration_of(*work.problem), answer.at("body").get<std::string>());
  return text;
}

}  // namespace

Result<ExportedKernel> export_triton(const PythonWork& work, const std::vector<Sizes>& sets,
                                     const std::string& arch, const CudaToolkit& toolkit,
                                     const Sandbox& sandbox) {
  CAPSTONE_TRY(const std::string digest, sha256_file(work.candidate));
  Json request{{"op", "export"},
               {"signature", signature_of(*work.problem)},
               {"sizes", Json::array()},
               {"capability", std::atoi(arch.substr(3).c_str())},
               {"folder", work.builds.string()}};
  for (const Sizes& sizes : sets) {
    Json set = Json::object();
    for (const auto& [name, value] : sizes) set[name] = value;
    request["sizes"].push_back(std::move(set));
  }
  auto started = start_python_script(work, sandbox, "export.py");
  if (!started) return fail(worker_error(started.error(), work));
  auto said = (*started)->ask(request, kExport, -1);
  if (!said) return fail(worker_error(said.error(), work));
  started->reset();  // from here on, nothing changes its files
  try {
    const Json& answer = said->message;
    std::vector<std::string> code;
    for (std::size_t i = 0; i < answer.at("names").size(); ++i) {
      CAPSTONE_TRY(std::string bytes, fat_binary(work.builds / fmt::format("{}.cubin", i), arch, toolkit));
      code.push_back(std::move(bytes));
    }
    return ExportedKernel{source_of(work, answer, code, arch, digest), code.size(),
                          answer.at("covered").get<std::size_t>(), answer.at("triton").get<std::string>()};
  } catch (const Json::exception&) {  // the candidate's process is not trusted
    return fail("the process that follows forward() gave no whole answer", work.candidate.string(), {},
                ExitCode::kGateOneFailed);
  }
}

}  // namespace capstone
