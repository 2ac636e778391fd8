#include <fmt/format.h>
#include <fnmatch.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "cli/choices.h"
#include "cli/output_path.h"
#include "cli/context.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/runtime/build/cuda.h"
#include "harness/analysis/selftest/selftest.h"
#include "rubric/numbers.h"
#include "rubric/worklog.h"
#include "templates/prose.h"
#include "harness/model/upgrade.h"

namespace capstone::cli {
namespace {

struct SelftestArguments {
  Backend backend = Backend::kAuto;
  Execution execution = Execution::kAuto;
  double budget_seconds = 3;
  std::vector<std::string> only;
  fs::path record;
  int jobs = 1;
};

std::optional<std::string> read_worklog(const HostileInput& input) {
  const Worklog worklog = parse_worklog(hostile_text(input));
  const Project project;
  const LedgerView ledger;
  const LedgerNumbers numbers(project, ledger);
  prose_to_html(worklog, numbers, {});
  prose_to_markdown(worklog, numbers, {});
  return std::nullopt;
}

Result<std::vector<CorpusCase>> chosen_exhibits(const SelftestArguments& arguments, const Resources& resources) {
  CAPSTONE_TRY(auto all, load_corpus(resources));
  if (arguments.only.empty()) return all;
  std::vector<CorpusCase> chosen;
  for (const std::string& pattern : arguments.only) {
    const std::size_t before = chosen.size();
    for (const CorpusCase& corpus_case : all)
      if (::fnmatch(pattern.c_str(), corpus_case.name.c_str(), 0) == 0) chosen.push_back(corpus_case);
    if (chosen.size() == before)
      return fail("no case is called " + pattern, (resources.share / "corpus").string(),
                  "names and patterns: --only 03_caches_by_pointer 'honest_*'");
  }
  return chosen;
}

// What was shown, in the corpus's order; less than all where it was interrupted.
struct Shown {
  std::vector<RowResult> rows;
  std::optional<Error> interrupted;
};

// Every case on `jobs` threads. A fault of the machine is its rows' failure, not the end of the others.
Shown run_all(const std::vector<CorpusCase>& cases, const SelftestRequest& request, int jobs, const Context& context) {
  const auto groups = groups_of(cases, request.backend);
  std::map<std::string, RowResult> rows;
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::optional<Error> interrupted;
  auto work = [&] {
    for (std::size_t i = next++; i < groups.size(); i = next++) {
      const auto& group = groups[i];
      auto say = [&](const std::string& text) {
        std::lock_guard lock(mutex);
        context.terminal.progress(fmt::format("{}/{} {}: {}", i + 1, groups.size(), group.front().name, text));
      };
      auto judged = run_group(group, request, context.resources, say);
      std::lock_guard lock(mutex);
      if (judged) {
        for (RowResult& row : *judged) rows[row.name] = std::move(row);
      } else if (judged.error().code == ExitCode::kInterrupted) {
        next = groups.size();
        interrupted = judged.error();
      } else {
        for (const CorpusCase& corpus_case : group) rows[corpus_case.name] = faulty_row(corpus_case, judged.error());
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  context.terminal.end_progress();
  Shown shown{{}, interrupted};
  for (const CorpusCase& corpus_case : cases)
    if (auto row = rows.find(corpus_case.name); row != rows.end()) shown.rows.push_back(std::move(row->second));
  return shown;
}

Tone tone_of(RowState state) {
  return state == RowState::kOk ? Tone::kGood : state == RowState::kNotRun ? Tone::kDim : Tone::kBad;
}

// A corpus may be shown in parts: rows of an earlier record of the same machine, execution and version stay, unless they were shown again.
Json with_earlier(Json record, const fs::path& file) {
  auto text = read_file(file, std::size_t{256} << 20);
  const Json earlier = text ? parse_recorded(*text) : Json();
  if (!earlier.is_object() || !earlier.contains("rows")) return record;
  for (const char* key : {"selftest", "tool", "backend", "execution", "device", "driver", "isolation"})
    if (earlier.value(key, Json()) != record.value(key, Json())) return record;
  Json rows = earlier["rows"];
  for (const Json& row : record["rows"]) {
    auto same = std::find_if(rows.begin(), rows.end(), [&](const Json& known) { return known["name"] == row["name"]; });
    if (same != rows.end()) *same = row;
    else rows.push_back(row);
  }
  record["rows"] = std::move(rows);
  record["rate"] = rate_of(record["rows"].get<std::vector<RowResult>>());
  return record;
}

// What was shown where. Asked before the first case: an interruption also ends the programs that tell of the machine.
Json place_of(const SelftestRequest& request, const Resources& resources) {
  Json record{{"selftest", 1}, {"tool", resources.version}};
  record["backend"] = request.backend == Backend::kCuda ? "cuda" : "emulated";
  if (request.backend == Backend::kCuda) {
    record["execution"] = request.execution == Execution::kInProcess ? "in-process" : request.execution == Execution::kReplayed ? "replayed" : "auto";
    if (auto gpu = find_gpu(resources)) record.update({{"device", gpu->name}, {"driver", gpu->driver}, {"compute_capability", gpu->compute_capability}});
  }
  record["isolation"] = Sandbox::detect(resources).description();
  return record;
}

Json record_of(const std::vector<RowResult>& rows, Json record) {
  record["rate"] = rate_of(rows);
  record["rows"] = rows;
  for (Json& row : record["rows"]) row["time"] = utc_now();
  return record;
}

void print_table(const std::vector<RowResult>& rows, const Terminal& t) {
  Table table({"row", "case", "expected", "got", "", "why"});
  for (const RowResult& row : rows) {
    std::string why = row.why.substr(0, row.why.find('\n'));
    if (display_width(why) > 90) why = to_utf8(why.substr(0, 87)) + "…";
    table.row({row.row ? std::to_string(row.row) : "honest", row.name, row.expected, row.got,
               t.paint(tone_of(row.state), label_of(row.state)), why});
  }
  t.out(table.text(t));
}

std::string rate_text(const Rate& rate) {
  auto share = [](int part, int all) { return all ? fmt::format("{} of {} ({:.3g} %)", part, all, 100.0 * part / all) : "none ran"; };
  std::string text = fmt::format("tricks caught: {}; honest kernels passed: {}; not run here: {}", share(rate.caught, rate.tricks),
                                 share(rate.passed, rate.honest), rate.not_run);
  if (rate.replayed + rate.in_process) text += "; honest kernels that can be replayed: " + share(rate.replayed, rate.replayed + rate.in_process);
  return text;
}

Result<ExitCode> selftest(const SelftestArguments& arguments, const Context& context) {
  if (!arguments.record.empty()) CAPSTONE_CHECK(output_path(context, arguments.record.string(), Output::kSelftest));
  CAPSTONE_TRY(const auto cases, chosen_exhibits(arguments, context.resources));
  SelftestRequest request;
  const BackendChoice choice = choose_backend(arguments.backend, context.resources);
  request.backend = choice.backend;
  if (request.backend == Backend::kCuda) {   // else every case would say the same
    CAPSTONE_CHECK(find_gpu(context.resources));
    CAPSTONE_CHECK(find_toolkit(context.resources));
  }
  request.execution = arguments.execution;
  request.budget_seconds = arguments.budget_seconds;
  request.readers = input_readers();
  request.readers["worklog"] = read_worklog;
  const Json place = place_of(request, context.resources);
  const auto [rows, interrupted] = run_all(cases, request, arguments.jobs, context);
  const Json record = record_of(rows, place);
  if (!arguments.record.empty()) CAPSTONE_CHECK(write_file_atomic(context.cwd / arguments.record, with_earlier(record, context.cwd / arguments.record).dump(1) + "\n"));
  if (interrupted) return fail(*interrupted);
  const Rate rate = rate_of(rows);
  if (context.json) {
    context.terminal.out(record.dump(2));
  } else {
    print_table(rows, context.terminal);
    if (!choice.because.empty()) context.terminal.out("judged on the emulated backend: " + choice.because);
    context.terminal.out(rate_text(rate));
  }
  return rate.good() ? ExitCode::kDone : ExitCode::kGateOneFailed;
}

}  // namespace

void add_selftest(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("selftest", "show the judge every known trick and many honest kernels: what does it make of them?");
  auto arguments = std::make_shared<SelftestArguments>();
  add_backend(*command, arguments->backend, "auto (default): a GPU where there is one, else emulated on the CPU");
  add_execution(*command, arguments->execution, "on a GPU (default auto)");
  command->add_option("--budget", arguments->budget_seconds, "seconds of GPU timing a kernel (default 3)")->check(CLI::Range(1.0, 3600.0));
  command->add_option("--only", arguments->only, "these cases alone; names or patterns: 'honest_*'");
  command->add_option("--record", arguments->record, "put the whole record into this file, as JSON, what was shown of it when interrupted; rows of an earlier run of the same machine and version stay");
  command->add_option("-j,--jobs", arguments->jobs, "cases at a time (default 1)")->check(CLI::Range(1, 64));
  add_format(*command, context);
  command->callback([arguments, &context, &action] { action = [arguments, &context] { return selftest(*arguments, context); }; });
}

}  // namespace capstone::cli
