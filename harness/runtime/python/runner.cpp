#include "harness/runtime/python/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/runtime/python/extensions.h"

namespace capstone {
namespace {

constexpr auto kImport = std::chrono::seconds(120);  // of PyTorch, from a cold disk
constexpr auto kLoad = std::chrono::seconds(300);    // a source may compile CUDA as it loads

WorkerLimits limits_of_python() {
  WorkerLimits limits;
  limits.start = kImport;
  limits.memory = std::size_t{16} << 30;
  limits.tasks = 4096;                 // thread pools, and compilers
  limits.file = std::size_t{1} << 30;  // objects that nvcc writes
  return limits;
}

WorkerFailure bad_request(const std::string& what) {
  return {WorkerFailure::Kind::kReported, what, {}, "this is a defect of capstone", "exception"};
}

class PythonRunner : public Runner {
 public:
  /// @param loaded  what the worker said once its source was loaded: a library's label, a candidate's
  ///                languages, and the version of Triton where its kernels are interpreted
  PythonRunner(const Problem& problem, std::unique_ptr<Runner> worker, const Json& loaded)
      : problem_(problem), worker_(std::move(worker)), hello_(worker_->hello()) {
    for (const char* key : {"label", "languages", "triton"})
      if (const auto said = loaded.find(key); said != loaded.end()) hello_[key] = *said;
  }

  const Json& hello() const override { return hello_; }
  // PyTorch brings cuBLAS and cuDNN along, used or not: kernels() tells what ran.
  std::set<std::string> libraries() override { return {}; }
  std::optional<std::vector<std::string>> kernels() override {
    std::vector<std::string> names;
    if (last_.is_null()) return names;
    Json question = last_;
    question["op"] = "kernels";
    auto answer = worker_->ask(question, kLoad);
    if (!answer) return names;
    if (auto list = answer->message.find("kernels"); list != answer->message.end() && list->is_array())
      for (const Json& name : *list)
        if (name.is_string()) names.push_back(name.get<std::string>());
    return names;
  }
  tl::expected<Packet, WorkerFailure> ask(const Json& request) override {
    return ask(request, std::chrono::seconds(10), -1);
  }

  tl::expected<Packet, WorkerFailure> ask(const Json& request, std::chrono::milliseconds timeout,
                                          int fd) override {
    const std::string op = request.value("op", "");
    if (op == "arena") compiled_.clear();  // the worker makes its modules anew
    if (op == "workspace" || op == "prepared") return Packet{{{"ok", true}, {"bytes", 0u}}, {}};
    if (op != "run" && op != "prepare" && op != "exact" && op != "self_check")
      return worker_->ask(request, timeout, fd);
    auto call = translated(request);
    if (!call) return tl::unexpected(bad_request(call.error().what));
    if (op == "run") {
      last_ = *call;
    } else if (op == "prepare") {
      (*call)["op"] = op;
    } else {
      (*call)["op"] = op;
      (*call)["atol"] = problem_.tolerance.atol;
      (*call)["rtol"] = problem_.tolerance.rtol;
    }
    if (op == "exact")
      for (std::size_t i = 0; i < (*call)["outputs"].size(); ++i)
        (*call)["outputs"][i].update(request.at("places").at(i));
    const bool first =
        (op == "run" || op == "prepare") && compiled_.insert(op + (*call)["sizes"].dump()).second;
    if (!first) return worker_->ask(*call, timeout);
    const auto begun = std::chrono::steady_clock::now();
    auto answer = worker_->ask(*call, timeout + kCompileLimit);
    if (answer)
      answer->message[kCompileSeconds] =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    else if (answer.error().kind == WorkerFailure::Kind::kTimedOut)
      answer.error().what =
          fmt::format("its first call at these sizes, which compiles it, did not end: {} s for compilation",
                      kCompileLimit.count());
    return answer;
  }

 private:
  // A request of the gates with names, shapes and types. An inout is not expected elsewhere than it is read:
  // PyTorch's arms have none.
  Result<Json> translated(const Json& request) const {
    const Json& args = request.at("args");
    const std::size_t first_size = problem_.signature.size();
    Json call{{"op", "run"},
              {"sizes", Json::object()},
              {"inputs", Json::array()},
              {"parameters", Json::array()},
              {"outputs", Json::array()}};
    Sizes sizes;
    for (std::size_t i = 0; i < problem_.symbols.size(); ++i) {
      sizes.emplace_back(problem_.symbols[i], args.at(first_size + i).at("i64").get<std::int64_t>());
      call["sizes"][sizes.back().first] = sizes.back().second;
    }
    for (std::size_t i = 0; i < first_size; ++i) {
      const Parameter& p = problem_.signature[i];
      if (p.is_scalar()) {
        // The others are constants of reference.py.
        if (!p.python.empty()) call["inputs"].push_back({{"value", args.at(i).begin().value()}});
        continue;
      }
      CAPSTONE_TRY(auto shape, shape_at(p, sizes));
      const bool expected = args.at(i).contains("expected");
      Json tensor{{"name", p.name},
                  {"at", args.at(i).at(expected ? "expected" : "at")},
                  {"shape", shape},
                  {"dtype", name_of(p.dtype)},
                  {"python", p.python}};
      const bool is_attribute = p.role == Role::kParameter && !p.python.empty();
      if (p.role != Role::kOutput) call[is_attribute ? "parameters" : "inputs"].push_back(tensor);
      if (expected) tensor["expected"] = true;
      if (p.is_written()) call["outputs"].push_back(std::move(tensor));
    }
    for (const char* key : {"repeat", "hide_ns"})
      if (auto at = request.find(key); at != request.end()) call[key] = *at;
    return call;
  }

  const Problem& problem_;
  std::unique_ptr<Runner> worker_;
  Json hello_;
  Json last_;                       ///< the run that was asked for last
  std::set<std::string> compiled_;  ///< what was asked at which sizes since the memory was mapped
};

fs::path scripts_of(const PythonWork& work) {
  std::error_code code;
  return fs::weakly_canonical(work.resources->share / "harness" / "runtime" / "python" / "worker", code);
}

std::vector<std::string> arguments_of(const PythonWork& work) {
  std::vector<std::string> arguments{
      "--device",    work.cuda ? "cuda" : "cpu",
      "--precision", std::string(name_of(work.problem->precision)),
      "--reference", fs::absolute(work.problem->folder / "reference.py").string()};
  if (work.candidate.empty())
    arguments.insert(arguments.end(), {"--arm", work.arm});
  else
    arguments.insert(arguments.end(), {"--candidate", fs::absolute(work.candidate).string()});
  return arguments;
}

/// A candidate on the CPU whose extensions the emulator runs.
bool emulates_extensions(const PythonWork& work) {
  return !work.cuda && !work.candidate.empty() && builds_extensions(work.candidate);
}

Surroundings surroundings_of(const PythonWork& work) {
  std::error_code code;
  fs::create_directories(work.builds / "tmp", code);
  Surroundings surroundings;
  surroundings.read = work.python->roots;
  surroundings.read.push_back(scripts_of(work));
  surroundings.write = {work.builds};
  std::string programs = "/usr/local/bin:/usr/bin:/bin";
  if (!work.toolkit.empty()) {
    programs = (work.toolkit / "bin").string() + ":" + programs;
    surroundings.read.push_back(work.toolkit);
  }
  surroundings.env = work.python->environment(work.builds, programs);
  surroundings.env.emplace_back("TMPDIR", (work.builds / "tmp").string());
  if (!work.toolkit.empty()) surroundings.env.emplace_back("CUDA_HOME", work.toolkit.string());
  return surroundings;
}

/// A process of its own that runs a script of the worker's folder.
StartedRunner start_script(const PythonWork& work, const Sandbox& sandbox, const std::string& script,
                           std::vector<std::string> arguments, const Surroundings& surroundings) {
  arguments.insert(arguments.begin(), {work.python->program.string(), (scripts_of(work) / script).string()});
  return Worker::start_runner(std::move(arguments), sandbox, limits_of_python(), work.cuda, surroundings);
}

StartedRunner start_worker(const PythonWork& work, const Sandbox& sandbox) {
  std::vector<std::string> arguments = arguments_of(work);
  for (const auto& parent : {work.first, work.parent}) {
    if (!parent || !work.candidate.empty()) continue;
    auto worker =
        parent == work.first ? parent->become(arguments) : parent->fork(arguments, limits_of_python());
    if (worker) return std::make_unique<Worker>(std::move(*worker));
    if (worker.error().report_kind != kCannotFork) return tl::unexpected(worker.error());
  }
  Surroundings surroundings = surroundings_of(work);
  if (emulates_extensions(work)) {
    if (auto allowed = allow_extensions(surroundings, *work.resources, work.builds); !allowed)
      return tl::unexpected(WorkerFailure{WorkerFailure::Kind::kReported, allowed.error().what,
                                          allowed.error().where, allowed.error().hint, "not_judgeable"});
    arguments.insert(arguments.end(), {"--extensions", extension_script(*work.resources).string()});
  }
  return start_script(work, sandbox, "worker.py", std::move(arguments), surroundings);
}

}  // namespace

std::shared_ptr<PythonParent> start_python_parent(const PythonWork& work, const Sandbox& trusted,
                                                  bool compile) {
  std::vector<std::string> argv{work.python->program.string(), (scripts_of(work) / "parent.py").string(),
                                "--device", work.cuda ? "cuda" : "cpu"};
  WorkerLimits limits = limits_of_python();
  if (compile) {
    argv.emplace_back("--compile");
  } else {  // its children are its own, and have limits of theirs
    limits.memory = 0;
    limits.tasks = 0;
  }
  auto parent = PythonParent::start(std::move(argv), trusted, limits, surroundings_of(work));
  return parent ? *parent : nullptr;
}

StartedRunner start_python_script(const PythonWork& work, const Sandbox& sandbox, const std::string& script) {
  auto worker = start_script(work, sandbox, script, arguments_of(work), surroundings_of(work));
  if (!worker) return worker;
  if (auto loaded = (*worker)->ask({{"op", "load"}}, kLoad); !loaded) return tl::unexpected(loaded.error());
  return worker;
}

StartedRunner start_python(const PythonWork& work, const Sandbox& sandbox) {
  auto worker = start_worker(work, sandbox);
  if (!worker) return worker;
  auto loaded = (*worker)->ask({{"op", "load"}}, kLoad);
  if (!loaded) return tl::unexpected(loaded.error());
  return std::make_unique<PythonRunner>(*work.problem, std::move(*worker), loaded->message);
}

}  // namespace capstone
