#include "harness/analysis/ladder/ladder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/ladder/languages.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"

namespace capstone {

// Sort key of a session: "L1" … "L8", then "W1" …, each by its number.
bool earlier_session(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty() || a[0] != b[0]) return a.substr(0, 1) < b.substr(0, 1);
  return a.size() != b.size() ? a.size() < b.size() : a < b;
}

namespace {

// "L5_gemm_ladder_two" → "L5"
std::string session_of(const fs::path& folder) { return split(folder.filename().string(), '_').front(); }

std::vector<fs::path> session_folders(const Resources& resources) {
  std::error_code code;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(resources.reference_kernels(), code))
    if (entry.is_directory(code) && entry.path().filename().string().find('_') != std::string::npos)
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end(), [](const fs::path& a, const fs::path& b) {
    return earlier_session(session_of(a), session_of(b));
  });
  return folders;
}

int kernels_in(const fs::path& folder) {
  std::error_code code;
  int kernels = 0;
  if (is_language_ladder(folder)) return 0;  // its rungs are not of a problem of that name
  for (const auto& file : fs::directory_iterator(folder, code)) kernels += file.path().extension() == ".cu";
  return kernels;
}

bool is_rung(const fs::path& file) {
  return file.extension() == ".cu" || (is_python_rung(file) && is_language_ladder(file.parent_path()));
}

LadderStep step_of(const Rung& rung, const Measurement& m) {
  LadderStep step;
  step.rung = rung;
  step.execution = recorded_name(m.execution);
  step.gate_one = label_of(m.gate_one);
  step.labels = m.labels;
  if (const CaseResult* failure = m.first_failure())
    step.trouble = failure->problem;
  else if (!m.build.ok && m.build.first_error)
    step.trouble = m.build.first_error->text;
  else if (!m.measured)
    step.trouble = m.gate_two_reason;
  if (!m.measured || !m.measured->speedup) return step;
  const Arm& arm = m.measured->arms.back();
  step.ms = arm.median_ms;
  step.warm_ms = arm.warm_ms;
  for (const auto& restart : arm.samples_ms)
    step.samples_ms.insert(step.samples_ms.end(), restart.begin(), restart.end());
  step.percent_of_peak = m.measured->percent_of_peak;
  step.peak = m.measured->peak;
  step.bound_by = m.measured->bound_by;
  step.of_library = *m.measured->speedup;
  step.dirty_ms = arm.dirty_ms;
  step.dirty_of_library = m.measured->dirty_speedup;
  step.sustained_ms = arm.sustained_ms;
  step.sustained_watts = arm.sustained_watts;
  step.sustained_sm_mhz = arm.sustained_sm_mhz;
  step.verdict = label_of(m.gate_two);
  return step;
}

// Adds the cost of each access if nothing can be timed. A rung that the CPU cannot observe has no counts.
std::optional<LadderStep::Counts> count(const LadderRequest& request, const Rung& rung,
                                        const Resources& resources, const Narration& say) {
  const auto explained = explain({request.problem, rung.source, request.problem->emulate, {}, true},
                                 resources, [&](const std::string& text) { say(rung.name + ": " + text); });
  if (!explained) return std::nullopt;
  const LineCounts& total = explained->total;
  const auto cost = cost_at(*request.problem, request.problem->measure);
  return LadderStep::Counts{
      total.global.units_per_request(), total.shared.requests ? total.shared.excess() : 0,
      explained->compulsory_bytes > 0 ? total.moved_bytes() / explained->compulsory_bytes : 0,
      cost && cost->bytes > 0 ? explained->moved_at_measured / cost->bytes : 0};
}

}  // namespace

RungHeader rung_header(std::string_view source) {
  // A note's name is indented by three characters in the comment and at most eleven long; its text begins in
  // column 15 and so does every line of it. Prose lines have no such gap.
  constexpr std::size_t kName = 3, kText = 15;
  RungHeader header;
  std::string* open = nullptr;
  for (std::string line : split(source, '\n')) {
    if (line.starts_with("# ") || line == "#") line.replace(0, 1, "//");  // Python's comments
    if (!line.starts_with("//")) break;
    const std::string_view said = trim(std::string_view(line).substr(2));
    if (header.title.empty()) {
      const std::size_t colon = said.find(':');
      header.title = trim(said.starts_with("Rung") && colon != said.npos ? said.substr(colon + 1) : said);
      continue;
    }
    if (said.empty()) {
      open = nullptr;
      continue;
    }
    const bool names =
        line.size() > kText && line[kName] != ' ' && line[kText - 1] == ' ' && line[kText] != ' ' &&
        trim(std::string_view(line).substr(kName, kText - kName)).find(' ') == std::string::npos;
    if (names) {
      const std::string_view name = trim(std::string_view(line).substr(kName, kText - kName));
      header.notes.emplace_back(name, "");
      open = &header.notes.back().second;
    } else if (!open || line[kName] != ' ') {
      open = &header.prose;
    }
    if (!open->empty()) *open += ' ';
    *open += names ? trim(std::string_view(line).substr(kText)) : said;
  }
  return header;
}

std::string code_digest(std::string_view source, bool python) {
  std::string code;
  for (const std::string& line : split(source, '\n'))
    if (const std::string_view words = trim(line); !words.empty() && !words.starts_with(python ? "#" : "//"))
      code += line + "\n";
  return sha256_hex(code);
}

std::vector<std::string> ladders_of(const Resources& resources, const std::string& session) {
  std::vector<std::string> problems;
  std::error_code code;
  for (const fs::path& folder : session_folders(resources)) {
    if (!session.empty() && session_of(folder) != session) continue;
    std::vector<std::string> here;
    for (const auto& entry : fs::directory_iterator(folder, code))
      if (entry.is_directory(code) && kernels_in(entry.path()) > 0) here.push_back(entry.path().filename());
    std::sort(here.begin(), here.end());
    for (std::string& problem : here)
      if (std::find(problems.begin(), problems.end(), problem) == problems.end())
        problems.push_back(std::move(problem));
  }
  return problems;
}

int count_rungs(const Resources& resources, const std::string& session, const std::string& problem) {
  int rungs = 0;
  for (const fs::path& folder : session_folders(resources))
    if (session_of(folder) == session) rungs += kernels_in(folder / problem);
  return rungs;
}

Result<std::vector<Rung>> rungs_of(const Resources& resources, const std::string& problem) {
  std::vector<Rung> rungs;
  std::error_code code;
  for (const fs::path& folder : session_folders(resources))
    for (const auto& file : fs::directory_iterator(folder / problem, code)) {
      if (!is_rung(file.path())) continue;
      CAPSTONE_TRY(const std::string text, read_file(file.path()));
      const RungHeader header = rung_header(text);
      Rung rung{file.path(), file.path().stem(), session_of(folder), header.title, {}};
      for (const auto& [name, note] : header.notes)
        if (name == "Changed") rung.changed = note;
      rungs.push_back(std::move(rung));
    }
  if (rungs.empty()) {
    auto ladders = ladders_of(resources, "");
    for (std::string& ladder : language_ladders(resources, "")) ladders.push_back(std::move(ladder));
    const auto meant = nearest(problem, ladders);
    return fail("no ladder for " + problem, resources.reference_kernels().string(),
                (meant ? "did you mean `" + *meant + "`?  " : "") + "ladders: " + join(ladders, ", "));
  }
  std::sort(rungs.begin(), rungs.end(), [](const Rung& a, const Rung& b) { return a.name < b.name; });
  CAPSTONE_TRY(const LadderDefinition definition, ladder_definition(resources, problem));
  if (definition.also.empty()) return rungs;
  CAPSTONE_TRY(const auto own, rungs_of(resources, definition.problem));
  for (const std::string& name : definition.also) {
    const auto found =
        std::find_if(own.begin(), own.end(), [&](const Rung& rung) { return rung.name == name; });
    if (found == own.end())
      return fail("no rung " + name + " of " + definition.problem, problem + "/ladder.yaml",
                  "`also` names rungs of the problem's own ladder");
    rungs.push_back(*found);
  }
  return rungs;
}

Result<Ladder> climb(const LadderRequest& request, const Resources& resources, const Narration& say) {
  const auto begun = std::chrono::steady_clock::now();
  JudgeRequest judged;
  judged.problem = request.problem;
  judged.options.backend = request.backend;
  judged.options.budget_seconds = request.budget_seconds;
  judged.restarts = request.restarts;
  judged.options.hidden_cases = 1;
  judged.options.python = request.library.empty() ? "none" : request.python;
  judged.options.python_path = request.python_path;
  if (!request.library.empty()) judged.options.baselines = {request.library};
  judged.options.quick = choose_backend(request.backend, resources).backend != Backend::kCuda;
  judged.options.sustained = request.sustained;
  judged.extra_checks = ExtraChecks::kNever;
  judged.name_causes = false;
  judged.timing = request.timing;
  for (const Rung& rung : request.rungs) judged.candidates.push_back({rung.name, rung.source});
  CAPSTONE_TRY(const auto measurements, judge(judged, resources, say));
  Ladder ladder;
  ladder.problem = request.ladder.empty() ? request.problem->id : request.ladder;
  ladder.title = request.problem->title;
  ladder.sizes = sizes_json(request.problem->measure);
  ladder.time = utc_now();
  ladder.tool = resources.version;
  CAPSTONE_TRY(const Cost cost, cost_at(*request.problem, request.problem->measure));
  ladder.flops = cost.flops;
  ladder.bytes = cost.bytes;
  for (std::size_t i = 0; i < measurements.size(); ++i) {
    const Measurement& m = measurements[i];
    CAPSTONE_TRY(const std::string text, read_file(request.rungs[i].source));
    LadderStep step = step_of(request.rungs[i], m);
    step.code_sha256 = code_digest(text, is_python_rung(request.rungs[i].source));
    if (!request.library.empty())
      step.effort = LadderStep::Effort{written(request.rungs[i].source, text), m.build.compile_seconds,
                                       m.measured ? m.measured->arms.back().launch_ms : 0};
    if (request.timing && !step.effort && m.backend == Backend::kEmulated && m.gate_one == GateOne::kPassed)
      step.counts = count(request, request.rungs[i], resources, say);
    ladder.steps.push_back(std::move(step));
    ladder.backend = recorded_name(m.backend);
    ladder.device = m.environment.value("device", "");
    ladder.driver = m.environment.value("driver", "");
    ladder.nvcc = m.environment.value("nvcc", "");
    ladder.copy_bytes_per_second = m.environment.value("copy_bytes_per_second", 0.0);
    if (m.measured && m.backend == Backend::kCuda) {
      for (const char* what : {"seconds", "run_again"})
        ladder.telemetry[what] = m.environment["telemetry"][what];
      const Arm& library = m.measured->arms.front();
      ladder.library = library.label;
      ladder.library_ms = library.median_ms.point;
      if (library.dirty_ms) ladder.library_dirty_ms = library.dirty_ms->point;
      if (library.sustained_ms) ladder.library_sustained_ms = library.sustained_ms->point;
    }
  }
  ladder.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  return ladder;
}

bool Ladder::compute_bound() const {
  for (const LadderStep& step : steps)
    if (step.timed() && !step.bound_by.empty()) return step.bound_by == "compute";
  return bytes > 0 && flops / bytes > 50;  // without a timing: the limit on most GPUs
}

const LadderStep* Ladder::fastest() const {
  const LadderStep* best = nullptr;
  for (const LadderStep& step : steps)
    if (step.timed() && step.gate_one == "PASS" && (!best || step.ms.point < best->ms.point)) best = &step;
  return best;
}

std::optional<double> Ladder::gain(std::size_t step) const {
  if (!steps[step].timed()) return std::nullopt;
  for (std::size_t below = step; below-- > 0;)
    if (steps[below].timed()) return steps[below].ms.point / steps[step].ms.point;
  return std::nullopt;
}

std::vector<OverSizes> over_sizes(const std::vector<Ladder>& ladders) {
  std::vector<OverSizes> all;  // of_library: the sum of logarithms until the end
  for (const Ladder& ladder : ladders)
    for (const LadderStep& step : ladder.steps) {
      if (!step.timed() || step.of_library.point <= 0) continue;
      auto mean = std::find_if(all.begin(), all.end(), [&](const OverSizes& known) {
        return known.problem == ladder.problem && known.rung == step.rung.name;
      });
      if (mean == all.end()) mean = all.insert(all.end(), {ladder.problem, step.rung.name, 0, 0});
      ++mean->sizes;
      mean->of_library += std::log(step.of_library.point);
    }
  std::erase_if(all, [](const OverSizes& mean) { return mean.sizes < 2; });
  for (OverSizes& mean : all) mean.of_library = std::exp(mean.of_library / mean.sizes);
  return all;
}

std::string Ladder::key() const {
  std::string text = problem;
  for (const auto& [name, value] : sizes.items())
    text += fmt::format(" {}={}", name, value.get<std::int64_t>());
  return text;
}

}  // namespace capstone
