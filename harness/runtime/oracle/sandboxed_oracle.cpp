#include "harness/runtime/oracle/sandboxed_oracle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/runtime/build/cache.h"
#include "harness/runtime/build/compiler.h"
#include "harness/runtime/build/neighbours.h"
#include "harness/runtime/worker/arena.h"
#include "harness/runtime/worker/worker.h"

namespace capstone {
namespace {

// Elements that are asked for at once: what they need in shared memory stays small, and each request is long
// enough for all threads.
constexpr std::size_t kMostElements = std::size_t{1} << 22;
constexpr auto kPatience = std::chrono::minutes(10);  // for one such request

const std::vector<std::string> kFlags = {"-O2", "-std=c++20", "-shared", "-fPIC"};

/// The line of a compiler's output that states the error.
std::string first_error(const std::string& output) {
  for (const std::string& line : split(output, '\n'))
    if (line.find("error:") != std::string::npos) return line;
  return std::string(trim(output.substr(0, output.find('\n'))));
}

Result<void> compile(const fs::path& compiler, const fs::path& source, const std::string& interface,
                     const fs::path& library, const Resources& resources, const Sandbox& sandbox) {
  // Built in a folder of its own and renamed, so that two concurrent runs never load half a library. The
  // interface is copied there: the folder that it comes from holds other problems, too.
  const ScratchFolder scratch(library);
  CAPSTONE_CHECK(write_new_file(scratch.path() / "problems" / "oracle.h", interface));
  const fs::path fresh = scratch.path() / "oracle.so";
  CompilerStep step{.argv = {compiler.string()},
                    .cwd = source.parent_path(),
                    .work = scratch.path(),
                    .read = {source.parent_path()}};
  step.argv.insert(step.argv.end(), kFlags.begin(), kFlags.end());
  const std::string by_hand =
      join(step.argv, " ") + " -I " + resources.share.string() + " " + source.string();
  for (const std::string& argument :
       {std::string("-I"), scratch.path().string(), source.string(), std::string("-o"), fresh.string()})
    step.argv.push_back(argument);
  CAPSTONE_TRY(const ProcessResult result, run_compiler(step, &sandbox, resources));
  if (!result.ok()) {
    const std::string said = first_error(result.err);
    return fail("the problem's oracle does not compile: " +
                    (said.empty() ? explain_end(result, step) : printable(said)),
                source.string(), "run: " + by_hand);
  }
  if (!is_own_file(fresh))
    return fail("the compiler made no library of the problem's oracle", source.string());
  std::error_code code;
  fs::rename(fresh, library, code);
  if (code)
    return fail("cannot store the compiled oracle: " + code.message(), library.string(),
                "make room there, or set CAPSTONE_CACHE to a folder on another disk", ExitCode::kEnvironment);
  return {};
}

/// Compiles a user's oracle once; later calls find it in the cache.
Result<fs::path> compiled(const fs::path& source, const std::string& text, const Resources& resources,
                          const Sandbox& sandbox) {
  const auto compiler = find_program("g++", resources.path_variable);
  if (!compiler)
    return fail("no g++ to compile the problem's oracle", source.string(),
                "install g++, or use a problem that ships with capstone", ExitCode::kEnvironment);
  CAPSTONE_TRY(const auto interface, read_file(resources.share / "problems" / "oracle.h"));
  const std::string digest = DigestBuilder()
                                 .add("source", text)
                                 .add("neighbours", digest_of_neighbours(source))
                                 .add("interface", interface)
                                 .add("flags", join(kFlags, " "))
                                 .add("version", resources.version)
                                 .hex();
  const fs::path library = resources.cache / "oracles" / (digest + ".so");
  if (!use_cached(library))
    CAPSTONE_CHECK(compile(*compiler, source, interface, library, resources, sandbox));
  return library;
}

/// Where things lie in the shared memory of one request.
class Places {
 public:
  std::size_t add(std::size_t bytes) {
    const std::size_t begin = (end_ + 63) / 64 * 64;
    end_ = begin + bytes;
    return begin;
  }
  std::size_t bytes() const { return end_; }

 private:
  std::size_t end_ = 0;
};

class SandboxedOracle : public Oracle::Source {
 public:
  SandboxedOracle(const Problem& problem, Worker worker) : id_(problem.id), worker_(std::move(worker)) {}

  Result<void> evaluate(const Problem& problem, const Sizes& sizes,
                        const std::vector<std::span<const std::byte>>& tensors, int output_parameter,
                        std::span<const std::int64_t> indices, std::span<double> value,
                        std::span<double> scale) override {
    const std::lock_guard lock(mutex_);
    Places places;
    std::vector<std::pair<std::size_t, std::span<const std::byte>>> inputs;
    CAPSTONE_TRY(Json parameters, parameters_of(problem, sizes, tensors, places, inputs));
    Json request{{"op", "evaluate"}, {"parameters", std::move(parameters)}, {"output", output_parameter}};
    request["sizes"] = Json::array();
    for (const auto& [symbol, number] : sizes) request["sizes"].push_back(number);
    const std::size_t most = std::min(indices.size(), kMostElements);
    const std::size_t value_at = places.add(most * sizeof(double)),
                      scale_at = places.add(most * sizeof(double)),
                      indices_at = places.add(most * sizeof(std::int64_t));
    request["value"] = value_at;
    request["scale"] = scale_at;
    CAPSTONE_CHECK(provide(places.bytes()));
    std::byte* memory = arena_.bytes().data();
    for (const auto& [at, bytes] : inputs) std::memcpy(memory + at, bytes.data(), bytes.size());
    for (std::size_t begin = 0; begin < indices.size(); begin += most) {
      const auto part = indices.subspan(begin, std::min(most, indices.size() - begin));
      request["count"] = part.size();
      name_elements(part, indices_at, request);
      if (auto answer = worker_.ask(request, kPatience); !answer)
        return fail(explained(answer.error(), sizes));
      std::memcpy(value.data() + begin, memory + value_at, part.size() * sizeof(double));
      std::memcpy(scale.data() + begin, memory + scale_at, part.size() * sizeof(double));
    }
    return {};
  }

 private:
  Result<Json> parameters_of(const Problem& problem, const Sizes& sizes,
                             const std::vector<std::span<const std::byte>>& tensors, Places& places,
                             std::vector<std::pair<std::size_t, std::span<const std::byte>>>& inputs) const {
    Json parameters = Json::array();
    std::size_t next = 0;
    for (const Parameter& parameter : problem.signature) {
      Json one{{"name", parameter.name}, {"dtype", name_of(parameter.dtype)}};
      if (parameter.is_scalar()) {
        if (!parameter.value) return fail(fmt::format("scalar {} has no value", parameter.name));
        CAPSTONE_TRY(const double number, parameter.value->evaluate(sizes));
        one["scalar"] = rounded_to(parameter.dtype, number);
      } else {
        CAPSTONE_TRY(const auto shape, shape_at(parameter, sizes));
        if (parameter.role != Role::kOutput) {
          one["at"] = places.add(tensors[next].size());
          inputs.emplace_back(one["at"].get<std::size_t>(), tensors[next]);
        }
        one["shape"] = shape;
        ++next;
      }
      parameters.push_back(std::move(one));
    }
    return parameters;
  }

  // A list, or where it begins if each element follows the one before.
  void name_elements(std::span<const std::int64_t> part, std::size_t at, Json& request) {
    request.erase("first");
    request.erase("indices");
    const auto jump = std::adjacent_find(part.begin(), part.end(), [](auto a, auto b) { return b != a + 1; });
    if (jump == part.end()) {
      request["first"] = part.front();
      return;
    }
    request["indices"] = at;
    std::memcpy(arena_.bytes().data() + at, part.data(), part.size_bytes());
  }

  Result<void> provide(std::size_t bytes) {
    if (bytes <= arena_.bytes().size()) return {};
    CAPSTONE_TRY(const int memory, arena_.resize(bytes));
    if (auto mapped = worker_.ask({{"op", "arena"}, {"bytes", bytes}}, kPatience, memory); !mapped)
      return fail(explained(mapped.error(), {}));
    return {};
  }

  Error explained(const WorkerFailure& failure, const Sizes& sizes) const {
    if (failure.kind == WorkerFailure::Kind::kInterrupted)
      return {"interrupted", {}, {}, ExitCode::kInterrupted};
    return {fmt::format("the oracle of {} failed: {}", id_, failure.what), to_string(sizes),
            "this is a defect of the problem's oracle.cpp, not of the kernel", ExitCode::kUsage};
  }

  std::string id_;
  Worker worker_;
  MemfdArena arena_;
  std::mutex mutex_;
};

}  // namespace

Result<Oracle> start_oracle(const Problem& problem, const Resources& resources, const Sandbox& sandbox) {
  std::error_code ignored;
  const fs::path source = fs::absolute(problem.folder, ignored) / "oracle.cpp";
  CAPSTONE_TRY(const auto text, read_file(source));
  const auto shipped = read_file(resources.problems() / problem.id / "oracle.cpp");
  fs::path library = resources.libexec / "oracles" / (problem.id + ".so");
  if (!shipped || *shipped != text || !fs::exists(library, ignored)) {
    CAPSTONE_TRY(library, compiled(source, text, resources, sandbox));
  }
  const WorkerLimits limits{.memory = std::size_t{16} << 30, .tasks = 1024};
  auto worker = Worker::start({(resources.libexec / "capstone-oracle").string(), library.string()}, sandbox,
                              limits, false);
  if (worker) return Oracle(std::make_shared<SandboxedOracle>(problem, std::move(*worker)));
  const WorkerFailure& failure = worker.error();
  if (failure.kind == WorkerFailure::Kind::kInterrupted)
    return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  if (failure.report_kind == "no_function")
    return fail(failure.what, source.string(),
                "define it as problems/oracle.h declares it, with extern \"C\"");
  return fail("cannot load the oracle: " + failure.what, library.string(),
              "rebuild capstone, or delete the file so that it is built again", ExitCode::kEnvironment);
}

}  // namespace capstone
