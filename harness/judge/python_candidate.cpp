#include "harness/judge/python_candidate.h"

#include <fmt/format.h>

#include <charconv>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {

namespace {

// What an untrusted process says, cut: a few short texts.
Json short_texts(const Json& said) {
  Json texts = Json::array();
  if (!said.is_array()) return texts;
  for (const Json& text : said)
    if (text.is_string() && texts.size() < 4)
      texts.push_back(to_utf8(printable(text.get<std::string>()).substr(0, 40)));
  return texts;
}

}  // namespace

bool is_python(const fs::path& source) { return source.extension() == ".py"; }

Result<std::unique_ptr<Runner>> load_candidate(const PythonWork& work, const Sandbox& sandbox,
                                               Measurement& into) {
  BuildResult& build = into.build;
  build.command = fmt::format("{} (PyTorch {}) loads {}", work.python->program.string(), work.python->torch,
                              work.candidate.string());
  const auto begun = std::chrono::steady_clock::now();
  auto loaded = start_python(work, sandbox);
  build.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  build.ok = loaded.has_value();
  if (build.ok) {
    if (const auto said = (*loaded)->hello().find("languages"); said != (*loaded)->hello().end())
      into.environment["languages"] = short_texts(*said);
    return std::move(*loaded);
  }
  const WorkerFailure& failure = loaded.error();
  if (failure.kind == WorkerFailure::Kind::kInterrupted)
    return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  if (failure.report_kind == kNoPyTorch || failure.report_kind == "not_judgeable") {
    not_judgeable_here(
        into,
        {failure.what, failure.report_kind == kNoPyTorch ? work.python->program.string() : failure.where,
         failure.hint, ExitCode::kEnvironment},
        failure.trace);
    return nullptr;
  }
  into.gate_one = GateOne::kBuildFailed;
  CompilerMessage message{failure.where, 0, 0, failure.what};
  // "file:line", as the worker says it.
  if (const std::size_t colon = failure.where.rfind(':'); colon != std::string::npos) {
    const char* end = failure.where.data() + failure.where.size();
    if (std::from_chars(failure.where.data() + colon + 1, end, message.line).ptr == end)
      message.file = failure.where.substr(0, colon);
  }
  if (message.file.empty()) message.file = work.candidate.string();
  build.first_error = std::move(message);
  build.log = failure.trace.empty() ? failure.what : failure.trace;
  return nullptr;
}

std::function<StartedRunner()> starting_with(std::unique_ptr<Runner> first,
                                             std::function<StartedRunner()> others) {
  auto held = std::make_shared<std::unique_ptr<Runner>>(std::move(first));
  return [held, others = std::move(others)]() -> StartedRunner {
    if (*held) return std::move(*held);
    return others();
  };
}

void not_judgeable_here(Measurement& into, const Error& because, const std::string& traceback) {
  into.gate_one = GateOne::kNotJudgeable;
  CaseResult reason;
  reason.id = "build";
  reason.problem = because.what;
  reason.where = because.where;
  reason.hint = because.hint;
  reason.traceback = traceback;
  into.cases.push_back(std::move(reason));
}

}  // namespace capstone
