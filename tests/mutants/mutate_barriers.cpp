// Deletes each barrier of each reference kernel, one at a time, and asks the instrumented build whether it
// notices. Run by scripts/mutate_barriers.sh; a short run is part of the test suite.
//
//   mutate_barriers [--only TEXT] [--from TEXT] [--most N]
//   mutate_barriers --changes TEXT [--page FILE]
//
// The second form makes the changes of changes.txt whose line holds TEXT. A change is judged by gate one,
// which also compares results: without the builds that observe accesses, and with them if it passes so.
// --page renews their rows of the table in FILE.
//
// Builds are kept, so a run that was broken off repeats its beginning quickly; --from starts at the first
// kernel whose name holds TEXT.
//
// Exit status: 0 every mutant is found or listed in survivors.txt with its reason, and no intact kernel is
// accused; 1 else.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/correctness/cases.h"
#include "harness/correctness/inputs.h"
#include "harness/judge/gate_one.h"
#include "harness/judge/judge.h"
#include "harness/runtime/build/build.h"
#include "harness/runtime/worker/worker.h"
#include "tests/resources.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;
const fs::path kSources = CAPSTONE_SOURCES;

struct Barrier {
  std::size_t at = 0, length = 0;
  int line = 0;
  std::string text;
};

/// Statements that order threads or wait for a copy; comments are not looked at.
std::vector<Barrier> barriers_in(std::string source) {
  static const std::regex comment(R"(//[^\n]*|/\*[\s\S]*?\*/)");
  static const std::regex statement(
      R"((__syncthreads|__syncwarp|__threadfence|__pipeline_wait_prior|cg::sync|cg::wait|\w+\.sync)\s*\([^;]*\)\s*;|asm\s+volatile\s*\(\s*"(cp\.async\.wait|bar\.sync|barrier\.sync|fence|membar|wgmma\.wait)[^;]*;"[^;]*\)\s*;)");
  std::string blank = source;
  for (std::sregex_iterator it(source.begin(), source.end(), comment), end; it != end; ++it)
    for (std::ptrdiff_t i = it->position(); i < it->position() + it->length(); ++i)
      if (source[static_cast<std::size_t>(i)] != '\n') blank[static_cast<std::size_t>(i)] = ' ';
  std::vector<Barrier> found;
  for (std::sregex_iterator it(blank.begin(), blank.end(), statement), end; it != end; ++it) {
    const auto at = static_cast<std::size_t>(it->position());
    found.push_back({at, static_cast<std::size_t>(it->length()),
                     1 + static_cast<int>(std::count(blank.begin(), blank.begin() + it->position(), '\n')),
                     it->str()});
  }
  return found;
}

/// Lines "key<blanks>text" of a file beside this one; # begins a comment.
Result<std::map<std::string, std::string>> table(const std::string& file) {
  CAPSTONE_TRY(std::string text, read_file(kSources / "tests" / "mutants" / file));
  std::map<std::string, std::string> rows;
  for (const std::string& line : split(text, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t blank = line.find(' ');
    if (blank == std::string::npos) return fail("a line of one word", "tests/mutants/" + file, line);
    rows[line.substr(0, blank)] = std::string(trim(line.substr(blank)));
  }
  return rows;
}

/// Sizes of "rows=9 cols=40000", in the problem's order.
Sizes read_sizes(const std::string& text) {
  Sizes sizes;
  for (const std::string& word : split(text, ' '))
    if (const auto sign = word.find('='); sign != std::string::npos)
      sizes.emplace_back(word.substr(0, sign), std::stoll(word.substr(sign + 1)));
  return sizes;
}

/// Check sizes to look at, the one with most work first: it takes every kernel through more than one tile.
/// Others follow because ragged shapes may have kernels of their own.
std::vector<Sizes> check_sizes(const Problem& problem) {
  constexpr double kMostWork = 6e6;  // [FLOP]
  constexpr std::size_t kMost = 4;
  auto work = [&](const Sizes& sizes) { return cost_at(problem, sizes)->flops; };
  std::vector<Sizes> chosen = problem.check;
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const Sizes& x, const Sizes& y) { return work(x) > work(y); });
  const auto small =
      std::find_if(chosen.begin(), chosen.end(), [&](const Sizes& sizes) { return work(sizes) < kMostWork; });
  chosen.erase(chosen.begin(), small == chosen.end() ? chosen.end() - 1 : small);
  if (chosen.size() > kMost) chosen.resize(kMost);
  return chosen;
}

struct Trial {
  bool ran = false, accused = false;
  std::string what;
};

/// A worker that runs one program at several sizes.
class Trials {
 public:
  Trials(const Problem& problem, Worker worker) : problem_(problem), worker_(std::move(worker)) {}

  /// Under two schedules; the first finding ends it.
  Result<Trial> run_at(const Sizes& sizes) {
    CAPSTONE_TRY(Json question, workspace_arguments(problem_, sizes));
    auto workspace = worker_.ask({{"op", "workspace"}, {"args", question}});
    if (!workspace) return Trial{false, false, workspace.error().what};
    CAPSTONE_TRY(Layout layout,
                 make_layout(problem_, sizes, workspace->message.value("bytes", std::size_t{0})));
    CAPSTONE_TRY(int descriptor, arena_.resize(layout.bytes));
    std::vector<std::byte> image(layout.bytes);
    for (const TensorSlot& slot : layout.tensors)
      if (problem_.signature[static_cast<std::size_t>(slot.parameter)].role != Role::kOutput)
        CAPSTONE_CHECK(fill_tensor(problem_, slot.parameter, sizes, 1, Battery::kPlain,
                                   std::span(image).subspan(slot.offset, slot.bytes)));
    if (auto mapped =
            worker_.ask({{"op", "arena"}, {"bytes", layout.bytes}}, std::chrono::seconds(20), descriptor);
        !mapped)
      return Trial{false, false, mapped.error().what};
    CAPSTONE_TRY(Json args, call_arguments(problem_, layout, sizes));
    for (const char* schedule : {"forward", "reverse"}) {
      CAPSTONE_CHECK(arena_.load(image));
      Json run{{"op", "run"},
               {"args", args},
               {"schedule", schedule},
               {"seed", 1},
               {"extents", call_extents(problem_, layout)}};
      run["workspace"] = layout.workspace_bytes ? Json(layout.workspace_offset) : Json(nullptr);
      if (auto answer = worker_.ask(run, std::chrono::minutes(5)); !answer)
        return Trial{true, true, answer.error().what};
    }
    return Trial{true, false, {}};
  }

 private:
  const Problem& problem_;
  Worker worker_;
  MemfdArena arena_;
};

/// Builds with hooks and runs at each size until something is found.
Result<Trial> try_kernel(const Problem& problem, const fs::path& source,
                         const std::vector<Sizes>& sizes_to_try, const Resources& resources) {
  BuildRequest request{&problem, source, &resources, nullptr, "mutant"};
  request.variant = BuildVariant::kInstrumented;
  CAPSTONE_TRY(EmulatedArtifact artifact, build_emulated(request));
  if (!artifact.result.ok)
    return Trial{false, false, "does not build: " + artifact.result.log.substr(0, 300)};
  const Sandbox sandbox = Sandbox::detect(resources);
  auto worker = Worker::start({artifact.program.string()}, sandbox, WorkerLimits{}, false);
  if (!worker) return Trial{false, false, worker.error().what};
  Trials trials(problem, std::move(*worker));
  Trial trial;
  for (const Sizes& sizes : sizes_to_try) {
    CAPSTONE_TRY(trial, trials.run_at(sizes));
    if (!trial.ran || trial.accused) break;
  }
  return trial;
}

/// A line of changes.txt: "file: old => new". The first place that holds `old` is changed.
struct Change {
  std::string file, old_text, new_text;
};

Result<std::vector<Change>> changes_with(const std::string& text) {
  CAPSTONE_TRY(const std::string all, read_file(kSources / "tests" / "mutants" / "changes.txt"));
  std::vector<Change> changes;
  for (const std::string& line : split(all, '\n')) {
    if (line.empty() || line[0] == '#') continue;
    const std::size_t colon = line.find(": "), arrow = line.find(" =>");
    if (colon == std::string::npos || arrow == std::string::npos || arrow < colon)
      return fail("a line that is not \"file: old => new\"", "tests/mutants/changes.txt", line);
    if (line.find(text) != std::string::npos)
      changes.push_back({line.substr(0, colon), line.substr(colon + 2, arrow - colon - 2),
                         std::string(trim(line.substr(arrow + 3)))});
  }
  return changes;
}

/// What gate one says of a source: nothing if it passes.
Result<Trial> judge_source(const Problem& problem, const fs::path& source, bool observed,
                           const Resources& resources) {
  JudgeRequest request;
  request.problem = &problem;
  request.candidates = {{"mutant", source}};
  request.options.backend = Backend::kEmulated;
  request.options.hidden_cases = 0;
  request.options.quick = !observed;
  request.timing = false;
  request.name_causes = false;
  CAPSTONE_TRY(auto all, judge(request, resources, [](const std::string&) {}));
  const Measurement& m = all.front();
  if (!m.build.ok) return Trial{false, false, "does not build: " + m.build.log.substr(0, 300)};
  const CaseResult* failure = m.first_failure();
  const bool judged = m.gate_one != GateOne::kNotJudgeable && m.gate_one != GateOne::kMachineFault;
  return Trial{judged, judged && m.gate_one != GateOne::kPassed,
               std::string(label_of(m.gate_one)) + (failure ? ": " + failure->problem : std::string())};
}

std::string escaped(const std::string& text) {
  std::string in_cell;
  for (const char c : text) in_cell += c == '|' ? std::string("\\|") : std::string(1, c);
  return in_cell;
}

/// The first two cells of a change's row.
std::string row_of(const Change& change) {
  const fs::path file = change.file;
  return fmt::format("| `{}/{}` | `{}` → {} | ", file.parent_path().filename().string(), file.stem().string(),
                     escaped(std::string(trim(change.old_text))),
                     change.new_text.empty() ? "nothing" : "`" + escaped(change.new_text) + "`");
}

/// Renews a row of the table between two markers of the page. Rows stand in the order of changes.txt.
Result<void> renew_row(const fs::path& page, const Change& renewed, const std::string& verdict) {
  constexpr std::string_view kBegin = "<!-- changes -->", kEnd = "<!-- end of changes -->";
  CAPSTONE_TRY(std::string text, read_file(page));
  const std::size_t begin = text.find(kBegin), end = text.find(kEnd);
  if (begin == std::string::npos || end == std::string::npos)
    return fail("the page has no place for the table", page.string(), fmt::format("{} and {}", kBegin, kEnd));
  const std::vector<std::string> old_rows = split(text.substr(begin, end - begin), '\n');
  CAPSTONE_TRY(const auto changes, changes_with(""));
  std::string table;
  int judged = 0, found = 0;
  for (const Change& change : changes) {
    const std::string head = row_of(change);
    const auto old = std::find_if(old_rows.begin(), old_rows.end(),
                                  [&](const std::string& row) { return row.starts_with(head); });
    std::string row;
    if (head == row_of(renewed))
      row = head + escaped(verdict) + " |";
    else if (old != old_rows.end())
      row = *old;
    else
      continue;
    ++judged;
    found += row.find("not found", head.size()) == std::string::npos;
    table += row + "\n";
  }
  text.replace(
      begin, end - begin,
      fmt::format("{}\n{} of {} changes are found.\n\n| rung | change | gate one |\n|---|---|---|\n{}",
                  kBegin, found, judged, table));
  return write_file_atomic(page, text);
}

/// Makes the change. @error the rung no longer holds the text.
Result<std::string> changed(const std::string& source, const Change& change) {
  const std::size_t at = source.find(change.old_text);
  if (at == std::string::npos)
    return fail("the rung has changed: it does not hold \"" + change.old_text + "\"", change.file,
                "renew tests/mutants/changes.txt");
  std::string mutant = source;
  mutant.replace(at, change.old_text.size(), change.new_text);
  return mutant;
}

Result<int> run_changes(const std::string& text, const std::optional<std::string>& page,
                        const Resources& resources) {
  CAPSTONE_TRY(const auto changes, changes_with(text));
  const fs::path scratch = resources.cache / "mutants";
  CAPSTONE_CHECK(make_folders(scratch));
  int found = 0, accused = 0;
  std::vector<std::string> files;
  for (const Change& change : changes) {
    if (files.empty() || files.back() != change.file) files.push_back(change.file);
    const fs::path kernel = kSources / "reference_kernels" / change.file;
    CAPSTONE_TRY(Problem problem, load_problem(kSources / "problems" / kernel.parent_path().filename()));
    CAPSTONE_TRY(const std::string source, read_file(kernel));
    const fs::path file = scratch / kernel.filename();
    CAPSTONE_TRY(const std::string mutant, changed(source, change));
    CAPSTONE_CHECK(write_file_atomic(file, mutant));
    CAPSTONE_TRY(Trial trial, judge_source(problem, file, false, resources));
    if (trial.ran && !trial.accused) {
      CAPSTONE_TRY(trial, judge_source(problem, file, true, resources));
    }
    found += trial.accused;
    const std::string verdict = trial.accused ? trial.what
                                : trial.ran   ? "**not found**"
                                              : "**not found**: " + trial.what;
    fmt::print("{}: {} => {}: {}\n", change.file, change.old_text, change.new_text, verdict);
    std::fflush(stdout);
    if (page) {
      CAPSTONE_CHECK(renew_row(*page, change, verdict.substr(0, verdict.find('\n'))));
    }
  }
  for (const std::string& name : files) {
    const fs::path kernel = kSources / "reference_kernels" / name;
    CAPSTONE_TRY(Problem problem, load_problem(kSources / "problems" / kernel.parent_path().filename()));
    CAPSTONE_TRY(const Trial whole, judge_source(problem, kernel, true, resources));
    accused += !whole.ran || whole.accused;
    fmt::print("{}: {}\n", name, whole.ran && !whole.accused ? "not accused" : "ACCUSED: " + whole.what);
    std::fflush(stdout);
  }
  fmt::print("\n{} changes: {} found; {} intact kernels accused\n", changes.size(), found, accused);
  return accused || found < static_cast<int>(changes.size()) || changes.empty() ? 1 : 0;
}

struct Options {
  std::optional<std::string> changes, page;
  std::string only, from;
  int most = 1 << 20;
};

Result<int> run(const Options& options, const Resources& resources) {
  CAPSTONE_TRY(const auto survivors, table("survivors.txt"));
  CAPSTONE_TRY(const auto more_sizes, table("sizes.txt"));
  std::vector<fs::path> kernels;
  for (const auto& entry : fs::recursive_directory_iterator(kSources / "reference_kernels"))
    if (entry.path().extension() == ".cu" &&
        fs::exists(kSources / "problems" / entry.path().parent_path().filename()))
      kernels.push_back(entry.path());
  std::sort(kernels.begin(), kernels.end());
  std::erase_if(kernels, [&](const fs::path& kernel) {
    return kernel.string().find(options.only) == std::string::npos;
  });
  kernels.erase(kernels.begin(), std::find_if(kernels.begin(), kernels.end(), [&](const fs::path& kernel) {
                  return kernel.string().find(options.from) != std::string::npos;
                }));
  const fs::path scratch = resources.cache / "mutants";
  CAPSTONE_CHECK(make_folders(scratch));
  int intact = 0, accused = 0, mutants = 0, found = 0, explained = 0, escaped = 0;
  fmt::print("{:<62} {:<22} {}\n", "kernel", "deleted", "hooks");
  for (const fs::path& kernel : kernels) {
    const std::string name = fs::relative(kernel, kSources / "reference_kernels").string();
    CAPSTONE_TRY(Problem problem, load_problem(kSources / "problems" / kernel.parent_path().filename()));
    CAPSTONE_TRY(std::string source, read_file(kernel));
    std::vector<Sizes> sizes = check_sizes(problem);
    if (const auto more = more_sizes.find(name); more != more_sizes.end())
      sizes.push_back(read_sizes(more->second));
    CAPSTONE_TRY(Trial whole, try_kernel(problem, kernel, sizes, resources));
    ++intact;
    accused += !whole.ran || whole.accused;
    fmt::print("{:<62} {:<22} {} [{} of {} kernels]\n", name, "-",
               whole.ran && !whole.accused ? "not accused" : "ACCUSED: " + whole.what, intact,
               kernels.size());
    std::fflush(stdout);
    for (const Barrier& barrier : barriers_in(source)) {
      if (mutants >= options.most) break;
      ++mutants;
      std::string mutant = source;
      mutant.replace(barrier.at, barrier.length, std::string(1, ';'));
      const fs::path file = scratch / kernel.filename();
      CAPSTONE_CHECK(write_file_atomic(file, mutant));
      CAPSTONE_TRY(Trial trial, try_kernel(problem, file, sizes, resources));
      const std::string place = name + ":" + std::to_string(barrier.line);
      std::string verdict = trial.accused ? "found: " + trial.what
                            : trial.ran   ? "ESCAPED"
                                          : "ESCAPED: " + trial.what;
      if (trial.accused)
        ++found;
      else if (auto known = survivors.find(place); trial.ran && known != survivors.end())
        ++explained, verdict = "survives: " + known->second;
      else
        ++escaped;
      fmt::print("{:<62} {:<22} {}\n", place, barrier.text.substr(0, 22), verdict);
      std::fflush(stdout);
    }
  }
  fmt::print("\n{} kernels, {} accused; {} mutants: {} found, {} survive for a reason, {} escaped\n", intact,
             accused, mutants, found, explained, escaped);
  return accused || escaped || intact == 0 ? 1 : 0;
}

}  // namespace
}  // namespace capstone

int main(int argc, char** argv) {
  capstone::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--only") options.only = argv[i + 1];
    if (flag == "--changes") options.changes = argv[i + 1];
    if (flag == "--page") options.page = argv[i + 1];
    if (flag == "--from") options.from = argv[i + 1];
    if (flag == "--most") options.most = std::atoi(argv[i + 1]);
  }
  const auto resources = capstone::test::suite_resources();
  const auto status = options.changes ? capstone::run_changes(*options.changes, options.page, resources)
                                      : capstone::run(options, resources);
  if (status) return *status;
  fmt::print(stderr, "{}\n", capstone::render(status.error()));
  return 2;
}
