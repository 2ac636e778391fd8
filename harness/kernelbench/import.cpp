#include "harness/kernelbench/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "harness/analysis/lint/triviality.h"
#include "harness/base/ascii.h"
#include "harness/base/files.h"
#include "harness/base/last_line.h"
#include "harness/base/scratch_folder.h"
#include "harness/base/text.h"
#include "harness/judge/reference_oracle.h"
#include "harness/kernelbench/definition.h"
#include "harness/kernelbench/variations.h"
#include "harness/runtime/python/python.h"
#include "harness/runtime/sandbox/sandbox.h"

namespace capstone {
namespace {

constexpr int kNoTorch = 4;                                 // examine.py's exit code
constexpr int kSeconds = 90;                                // [s] that examine.py may search for sizes
constexpr auto kLimit = std::chrono::seconds(240);          // then it is killed
constexpr std::size_t kHostMemory = std::size_t{12} << 30;  // [B]

// The findings of examine.py; its own one-line reason if the file cannot become a problem.
Result<Json> examine(const ImportRequest& request, const Python& python, const Resources& resources) {
  const ScratchFolder scratch(resources.cache / "kernelbench");
  CAPSTONE_CHECK(make_folders(scratch.path()));
  std::error_code code;
  const fs::path harness = fs::weakly_canonical(resources.share / "harness", code),
                 workers = harness / "runtime" / "python" / "worker",
                 script = harness / "kernelbench" / "examine.py";
  const fs::path out = scratch.path() / "found.json";
  ProcessSpec spec;
  spec.argv = {python.program.string(),
               script.string(),
               fs::absolute(request.file.path).string(),
               out.string(),
               "--memory",
               fmt::format("{:.0f}", request.memory_bytes),
               "--host-memory",
               fmt::format("{}", kHostMemory / 2),
               "--seconds",
               std::to_string(kSeconds)};
  spec.env = python.environment(scratch.path(), "/usr/local/bin:/usr/bin:/bin");
  for (auto& [name, value] : spec.env)
    if (name == "PYTHONPATH") value = workers.string() + ":" + value;
  spec.timeout = kLimit;
  spec.max_memory = kHostMemory;
  spec.max_tasks = 4096;
  spec.max_file = std::size_t{64} << 20;
  Access access;
  access.read = python.roots;
  access.read.push_back(workers);
  access.read.push_back(script.parent_path());
  access.write = {scratch.path()};
  CAPSTONE_TRY(const ProcessResult ran,
               run_process(Sandbox::detect(resources).confine(std::move(spec), access)));
  const std::string where = request.file.path.string();
  using End = ProcessResult::End;
  if (ran.end == End::kInterrupted) return fail("interrupted", {}, {}, ExitCode::kInterrupted);
  if (ran.end == End::kTimedOut)
    return fail(fmt::format("the file was still running after {} s on the CPU", kLimit.count()), where,
                "give its constants smaller values");
  if (ran.end == End::kTooMuchMemory)
    return fail("the file takes too much memory on the CPU at any size", where,
                "give its constants smaller values");
  auto text = read_file(out, std::size_t{64} << 20);
  Json found = text ? parse_json(*text) : Json();
  if (!found.is_object()) {
    const std::string said = last_line(to_utf8(ran.err)).substr(0, 300);
    if (ran.end == End::kExited && ran.status == kNoTorch) return fail(broken_torch(python, said));
    return fail("the file failed: " + (said.empty() ? fmt::format("exit code {}", ran.status) : said), where);
  }
  if (auto why = found.find("refused"); why != found.end() && why->is_string())
    return fail(to_utf8(why->get<std::string>()), where);
  return found;
}

std::vector<std::string> notes_of(const Json& found) {
  std::vector<std::string> notes;
  if (auto list = found.find("notes"); list != found.end() && list->is_array())
    for (const Json& note : *list)
      if (note.is_string()) notes.push_back(to_utf8(note.get<std::string>()));
  return notes;
}

// One line for all variations; those with the same reason are listed together.
std::string left_out(const std::map<std::string, std::string>& outside) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const auto& [name, reason] : outside)
    by_reason[reason].emplace_back(description_of(*battery_named(name)));
  std::vector<std::string> parts;
  for (const auto& [reason, names] : by_reason)
    parts.push_back(fmt::format("{} ({})", join(names, ", "), reason));
  return "left out of the checks: inputs " + join(parts, "; ");
}

Result<Problem> write_definition(const ImportRequest& request, const Json& found,
                                 const std::vector<std::string>& notes,
                                 const DefinitionExceptions& exceptions) {
  CAPSTONE_TRY(const std::string yaml, definition_yaml(request.file, found, exceptions));
  CAPSTONE_CHECK(make_folders(request.folder));
  CAPSTONE_CHECK(write_file_atomic(request.folder / "problem.yaml", yaml));
  CAPSTONE_CHECK(
      write_file_atomic(request.folder / "statement.md", definition_statement(request.file, found, notes)));
  CAPSTONE_CHECK(write_file_atomic(request.folder / "reference.py", found.value("reference", "")));
  return load_problem(request.folder);
}

}  // namespace

std::string KernelBenchFile::id() const {
  std::string id = fmt::format("kb{}_", level);
  for (char c : name) id += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  id = ascii_lower(id).substr(0, 40);
  while (id.ends_with('_')) id.pop_back();
  return id;
}

KernelBenchFile kernelbench_file(const fs::path& path, int level) {
  KernelBenchFile file;
  file.path = path;
  file.name = path.stem().string();
  std::from_chars(file.name.data(), file.name.data() + file.name.size(), file.number);
  std::error_code code;
  const std::string folder = fs::absolute(path, code).parent_path().filename().string();
  if (level == 0 && folder.starts_with("level") && std::isdigit(static_cast<unsigned char>(folder.back())))
    level = folder.back() - '0';
  file.level = level >= 1 && level <= 3 ? level : 1;
  return file;
}

Result<ImportedProblem> import_kernelbench(const ImportRequest& request, const Resources& resources,
                                           const Narration& say) {
  std::error_code code;
  if (!fs::is_regular_file(request.file.path, code))
    return fail("no such file", request.file.path.string(),
                "give a file in KernelBench's form: Model, get_inputs(), get_init_inputs()");
  CAPSTONE_TRY(const Python python,
               find_python(request.python == "none" ? "auto" : request.python, resources));
  say(fmt::format("running {} with PyTorch {}", request.file.path.filename().string(), python.torch));
  CAPSTONE_TRY(const Json found, examine(request, python, resources));
  std::vector<std::string> notes = notes_of(found);
  ImportedProblem imported;
  CAPSTONE_TRY(imported.problem, write_definition(request, found, notes, {}));

  CAPSTONE_TRY(const auto reference, load_reference_oracle(imported.problem, resources, request.python));
  DefinitionExceptions exceptions;
  say("variations of the inputs");
  CAPSTONE_TRY(exceptions.outside_domain, variations_outside(imported.problem, reference));
  if (!exceptions.outside_domain.empty()) {
    notes.push_back(left_out(exceptions.outside_domain));
    CAPSTONE_TRY(imported.problem, write_definition(request, found, notes, exceptions));
  }

  say("the triviality audit");
  CAPSTONE_TRY(const auto tricks, audit_triviality(imported.problem, Oracle(reference)));
  std::set<std::string> told;
  for (const Trick& trick : tricks) {
    if (trick.caught) continue;
    exceptions.because[trick.name] = "this is a property of the imported problem; see statement.md";
    if (told.insert(trick.what).second)
      notes.push_back(trick.name == "lower_precision"
                          ? fmt::format("its tolerance does not detect lower precision ({})", trick.what)
                          : fmt::format("degenerate: gate one cannot distinguish {} from the correct answer",
                                        trick.what));
  }
  if (!exceptions.because.empty()) {
    CAPSTONE_TRY(imported.problem, write_definition(request, found, notes, exceptions));
  }
  imported.notes = std::move(notes);
  return imported;
}

}  // namespace capstone
