#include "harness/workflows/selftest_run.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/runtime/build/cuda.h"
#include "harness/workflows/output_path.h"
#include "rubric/numbers.h"
#include "rubric/worklog.h"
#include "templates/prose.h"

namespace capstone::workflows {
namespace {

std::optional<std::string> read_worklog(const HostileInput& input) {
  const Worklog worklog = parse_worklog(hostile_text(input));
  const Project project;
  const LedgerView ledger;
  const LedgerNumbers numbers(project, ledger);
  prose_to_html(worklog, numbers, {});
  prose_to_markdown(worklog, numbers, {});
  return std::nullopt;
}

Result<std::vector<CorpusCase>> chosen_cases(const std::vector<std::string>& only,
                                             const Resources& resources) {
  CAPSTONE_TRY(auto all, load_corpus(resources));
  if (only.empty()) return all;
  std::vector<CorpusCase> chosen;
  for (const std::string& pattern : only) {
    const std::size_t before = chosen.size();
    for (const CorpusCase& corpus_case : all)
      if (::fnmatch(pattern.c_str(), corpus_case.name.c_str(), 0) == 0) chosen.push_back(corpus_case);
    if (chosen.size() == before)
      return fail("no case matches " + pattern, (resources.share / "corpus").string(),
                  "names and patterns: --only 03_caches_by_pointer 'honest_*'");
  }
  return chosen;
}

// The rows in the corpus's order; after an interruption some are missing.
struct Finished {
  std::vector<RowResult> rows;
  std::optional<Error> interrupted;
};

// Runs every case, on `jobs` threads. A fault of the machine fails its own rows; the others run on.
Finished run_all(const std::vector<CorpusCase>& cases, const SelftestRequest& request, int jobs,
                 const Resources& resources, const ProgressSink& progress) {
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
        report_step(progress, fmt::format("{}/{} {}: {}", i + 1, groups.size(), group.front().name, text));
      };
      auto judged = run_group(group, request, resources, say);
      std::lock_guard lock(mutex);
      if (judged) {
        for (RowResult& row : *judged) rows[row.name] = std::move(row);
      } else if (judged.error().code == ExitCode::kInterrupted) {
        next = groups.size();
        interrupted = judged.error();
      } else {
        for (const CorpusCase& corpus_case : group)
          rows[corpus_case.name] = faulty_row(corpus_case, judged.error());
      }
    }
  };
  std::vector<std::thread> others;
  for (int i = 1; i < jobs; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
  Finished finished{{}, interrupted};
  for (const CorpusCase& corpus_case : cases)
    if (auto row = rows.find(corpus_case.name); row != rows.end())
      finished.rows.push_back(std::move(row->second));
  return finished;
}

// The corpus may be run in parts: rows of an earlier record of the same machine, execution and version stay,
// unless they were run again.
Json with_earlier(Json record, const fs::path& file) {
  auto text = read_file(file, std::size_t{256} << 20);
  const Json earlier = text ? parse_recorded(*text) : Json();
  if (!earlier.is_object() || !earlier.contains("rows")) return record;
  for (const char* key : {"selftest", "tool", "backend", "execution", "device", "driver", "isolation"})
    if (earlier.value(key, Json()) != record.value(key, Json())) return record;
  Json rows = earlier["rows"];
  for (const Json& row : record["rows"]) {
    auto same = std::find_if(rows.begin(), rows.end(),
                             [&](const Json& known) { return known["name"] == row["name"]; });
    if (same != rows.end())
      *same = row;
    else
      rows.push_back(row);
  }
  record["rows"] = std::move(rows);
  record["rate"] = rate_of(record["rows"].get<std::vector<RowResult>>());
  return record;
}

// Facts about the machine. Collected first: an interruption would also end the programs that report them.
Json place_of(const SelftestRequest& request, const Resources& resources) {
  Json record{{"selftest", 1}, {"tool", resources.version}};
  record["backend"] = name_of(request.backend);
  if (request.backend == Backend::kCuda) {
    record["execution"] = name_of(request.execution);
    if (auto gpu = find_gpu(resources))
      record.update(
          {{"device", gpu->name}, {"driver", gpu->driver}, {"compute_capability", gpu->compute_capability}});
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

}  // namespace

Result<SelftestOutcome> run_selftest(const SelftestRun& run, const Workspace& workspace,
                                     const ProgressSink& progress) {
  fs::path file;
  if (!run.record.empty()) {
    CAPSTONE_TRY(file, output_path(workspace, run.record, Output::kSelftest));
  }
  CAPSTONE_TRY(const auto cases, chosen_cases(run.only, workspace.resources));
  SelftestRequest request;
  const BackendChoice choice = choose_backend(run.backend, workspace.resources);
  request.backend = choice.backend;
  if (request.backend == Backend::kCuda) {  // else every case would fail with the same error
    CAPSTONE_CHECK(find_gpu(workspace.resources));
    CAPSTONE_CHECK(find_toolkit(workspace.resources));
  }
  request.execution = run.execution;
  request.budget_seconds = run.budget_seconds;
  request.readers = input_readers();
  request.readers["worklog"] = read_worklog;
  const Json place = place_of(request, workspace.resources);
  auto [rows, interruption] = run_all(cases, request, run.jobs, workspace.resources, progress);
  SelftestOutcome outcome{std::move(rows), {}, {}, choice.because};
  outcome.rate = rate_of(outcome.rows);
  outcome.record = record_of(outcome.rows, place);
  if (!file.empty())
    CAPSTONE_CHECK(write_file_atomic(file, with_earlier(outcome.record, file).dump(1) + "\n"));
  if (interruption) return fail(*interruption);  // the record keeps the cases that were run
  return outcome;
}

}  // namespace capstone::workflows
