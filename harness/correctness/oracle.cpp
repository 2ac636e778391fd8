#include "harness/correctness/oracle.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/parallel.h"
#include "harness/base/subprocess.h"
#include "harness/base/text.h"
#include "harness/correctness/dtype_convert.h"

namespace capstone {
namespace {

constexpr std::int64_t kMostChunk = 1 << 16;  // elements per call: enough to share work between neighbours

const std::vector<std::string> kFlags = {"-O2", "-std=c++20", "-shared", "-fPIC"};

/// The line of a compiler's output that states the error.
std::string first_error(const std::string& output) {
  for (const std::string& line : split(output, '\n'))
    if (line.find("error:") != std::string::npos) return line;
  return std::string(trim(output.substr(0, output.find('\n'))));
}

Result<void> compile(const fs::path& compiler, const fs::path& source, const fs::path& library,
                     const Resources& resources) {
  CAPSTONE_CHECK(make_folders(library.parent_path()));
  // Built under a temporary name and renamed, so that two concurrent runs never load half a library.
  const fs::path partial = temporary_beside(library);
  ProcessSpec spec;
  spec.argv = {compiler.string()};
  spec.argv.insert(spec.argv.end(), kFlags.begin(), kFlags.end());
  for (const std::string& argument :
       {std::string("-I"), resources.share.string(), source.string(), std::string("-o"), partial.string()})
    spec.argv.push_back(argument);
  spec.timeout = std::chrono::minutes(2);
  CAPSTONE_TRY(const auto result, run_process(spec));
  std::error_code ignored;
  if (!result.ok()) {
    fs::remove(partial, ignored);
    return fail("the problem's oracle does not compile: " + first_error(result.err), source.string(),
                "run: " + join(spec.argv, " "));
  }
  fs::rename(partial, library, ignored);
  if (ignored)
    return fail("cannot store the compiled oracle: " + ignored.message(), library.string(), {},
                ExitCode::kEnvironment);
  return {};
}

/// Compiles a user's oracle once; later calls find it in the cache.
Result<fs::path> compiled(const fs::path& source, const std::string& text, const Resources& resources) {
  const auto compiler = find_program("g++", resources.path_variable);
  if (!compiler)
    return fail("no g++ to compile the problem's oracle", source.string(),
                "install g++, or use a problem that ships with capstone", ExitCode::kEnvironment);
  CAPSTONE_TRY(const auto interface, read_file(resources.share / "problems" / "oracle.h"));
  const std::string digest = DigestBuilder()
                                 .add("source", text)
                                 .add("interface", interface)
                                 .add("flags", join(kFlags, " "))
                                 .add("version", resources.version)
                                 .hex();
  const fs::path library = resources.cache / "oracles" / (digest + ".so");
  std::error_code ignored;
  if (!fs::exists(library, ignored)) {
    CAPSTONE_CHECK(compile(*compiler, source, library, resources));
  }
  return library;
}

/// A case in the form of the oracle's interface. The pointers in `tensors` point into the other members.
struct OracleCase {
  std::vector<CapstoneTensor> tensors;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::string> dtypes;
  std::vector<std::int64_t> sizes;
  CapstoneCase view() const {
    return {tensors.data(), static_cast<int>(tensors.size()), sizes.data(), static_cast<int>(sizes.size())};
  }
};

std::int64_t elements_of(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Result<CapstoneTensor> scalar_of(const Parameter& parameter, const Sizes& sizes, const char* dtype) {
  if (!parameter.value) return fail(fmt::format("scalar {} has no value", parameter.name));
  CAPSTONE_TRY(const double value, parameter.value->evaluate(sizes));
  return CapstoneTensor{
      parameter.name.c_str(), dtype, nullptr, nullptr, 0, rounded_to(parameter.dtype, value)};
}

Result<const void*> data_of(const Parameter& parameter, std::span<const std::byte> bytes,
                            std::int64_t elements) {
  if (parameter.role == Role::kOutput) return nullptr;
  const std::size_t needed = static_cast<std::size_t>(elements) * size_of(parameter.dtype);
  if (bytes.size() != needed)
    return fail(
        fmt::format("the oracle needs {} bytes of {}, but got {}", needed, parameter.name, bytes.size()), {},
        {}, ExitCode::kInternal);
  return bytes.data();
}

Result<OracleCase> make_case(const Problem& problem, const Sizes& sizes,
                             const std::vector<std::span<const std::byte>>& tensors) {
  OracleCase made;
  const std::size_t count = problem.signature.size();
  made.shapes.resize(count);
  for (const Parameter& parameter : problem.signature) made.dtypes.emplace_back(name_of(parameter.dtype));
  for (const auto& [symbol, value] : sizes) made.sizes.push_back(value);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Parameter& parameter = problem.signature[i];
    const char* dtype = made.dtypes[i].c_str();
    if (parameter.is_scalar()) {
      CAPSTONE_TRY(auto scalar, scalar_of(parameter, sizes, dtype));
      made.tensors.push_back(scalar);
      continue;
    }
    if (next >= tensors.size())
      return fail("the oracle was given too few tensors", problem.id, {}, ExitCode::kInternal);
    CAPSTONE_TRY(made.shapes[i], shape_at(parameter, sizes));
    CAPSTONE_TRY(const void* data, data_of(parameter, tensors[next++], elements_of(made.shapes[i])));
    made.tensors.push_back({parameter.name.c_str(), dtype, data, made.shapes[i].data(),
                            static_cast<int>(made.shapes[i].size()), 0.0});
  }
  if (next != tensors.size())
    return fail("the oracle was given too many tensors", problem.id, {}, ExitCode::kInternal);
  return made;
}

/// Elements per call: several calls per thread for balance, and whole rows if rows are short, because an
/// oracle may compute a row's statistics once for all its elements.
std::int64_t chunk_for(std::int64_t count, std::int64_t row, int threads) {
  const std::int64_t even =
      std::clamp<std::int64_t>(count / (std::int64_t{threads} * 8) + 1, 256, kMostChunk);
  if (row < 1 || row > kMostChunk) return even;
  return (even + row - 1) / row * row;
}

}  // namespace

Result<Oracle> Oracle::open(const fs::path& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = ::dlerror();
    return fail(fmt::format("cannot load the oracle: {}", why ? why : "unknown reason"), library.string(),
                "rebuild capstone, or delete the file so that it is built again", ExitCode::kEnvironment);
  }
  std::shared_ptr<void> owner(handle, [](void* h) { ::dlclose(h); });
  auto* function = reinterpret_cast<Function>(::dlsym(handle, "capstone_oracle"));
  if (!function)
    return fail("oracle.cpp defines no capstone_oracle()", library.string(),
                "define it as problems/oracle.h declares it, with extern \"C\"");
  return Oracle(std::move(owner), function);
}

Result<Oracle> Oracle::load(const Problem& problem, const Resources& resources) {
  const fs::path source = problem.folder / "oracle.cpp";
  CAPSTONE_TRY(const auto text, read_file(source));
  const auto shipped = read_file(resources.problems() / problem.id / "oracle.cpp");
  const fs::path built = resources.libexec / "oracles" / (problem.id + ".so");
  std::error_code ignored;
  if (shipped && *shipped == text && fs::exists(built, ignored)) return open(built);
  CAPSTONE_TRY(const auto library, compiled(source, text, resources));
  return open(library);
}

Result<void> Oracle::evaluate(const Problem& problem, const Sizes& sizes,
                              const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                              std::span<const std::int64_t> indices, std::span<double> value,
                              std::span<double> scale, int threads) const {
  if (source_) return source_->evaluate(problem, sizes, tensors, output_parameter, indices, value, scale);
  CAPSTONE_TRY(const auto prepared, make_case(problem, sizes, tensors));
  if (output_parameter < 0 || output_parameter >= static_cast<int>(problem.signature.size()) ||
      !problem.signature[static_cast<std::size_t>(output_parameter)].is_written())
    return fail(fmt::format("parameter {} of {} is not an output", output_parameter, problem.id), {}, {},
                ExitCode::kInternal);
  if (value.size() != indices.size() || scale.size() != indices.size())
    return fail("value and scale must be as long as the indices", problem.id, {}, ExitCode::kInternal);
  const auto& shape = prepared.shapes[static_cast<std::size_t>(output_parameter)];
  const std::int64_t elements = elements_of(shape);
  for (const std::int64_t index : indices)
    if (index < 0 || index >= elements)
      return fail(fmt::format("element {} of {} was requested", index, elements), problem.id, {},
                  ExitCode::kInternal);

  const CapstoneCase view = prepared.view();
  const auto count = static_cast<std::int64_t>(indices.size());
  const int workers = threads_or_all(threads);
  try {
    parallel_for(count, chunk_for(count, shape.empty() ? 1 : shape.back(), workers), workers,
                 [&](std::int64_t begin, std::int64_t end) {
                   function_(&view, output_parameter, indices.data() + begin, end - begin,
                             value.data() + begin, scale.data() + begin);
                 });
  } catch (const std::exception& exception) {
    return fail(fmt::format("the oracle of {} failed: {}", problem.id, exception.what()), to_string(sizes),
                "this is a defect of the problem, not of the kernel", ExitCode::kInternal);
  }
  return {};
}

Result<void> Oracle::evaluate_all(const Problem& problem, const Sizes& sizes,
                                  const std::vector<std::span<const std::byte>>& tensors,
                                  int output_parameter, std::span<double> value, std::span<double> scale,
                                  int threads) const {
  std::vector<std::int64_t> indices(value.size());
  std::iota(indices.begin(), indices.end(), std::int64_t{0});
  return evaluate(problem, sizes, tensors, output_parameter, indices, value, scale, threads);
}

}  // namespace capstone
