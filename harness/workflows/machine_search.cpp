#include "harness/workflows/machine_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <thread>

#include "harness/analysis/explain/explain.h"
#include "harness/analysis/profile/profile.h"
#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/instant.h"
#include "harness/base/text.h"
#include "harness/project/reply/feedback.h"
#include "harness/workflows/output_path.h"
#include "templates/machine_page.h"

namespace capstone::workflows {
namespace {

namespace m = capstone::machine;

// Of several judgements at a time, the steps would only confuse.
void quiet(const StageEvent&) {}

fs::path folder_of(const Project& project) { return project.root / ".capstone" / "machine"; }

// The settings that decide which nodes there are; a limit may grow when a run goes on.
Json without_limits(Json settings) {
  for (const char* limit : {"k", "turns", "chains", "rounds"}) settings.erase(limit);
  return settings;
}

Result<m::RunInfo> chosen_run(const m::Archive& archive, const MachineRequest& request, m::RunInfo wanted) {
  if (!request.run.empty()) {
    CAPSTONE_TRY(const auto all, archive.runs());
    for (const m::RunInfo& info : all) {
      if (info.name != request.run) continue;
      if (info.kind != wanted.kind || without_limits(info.settings) != without_limits(wanted.settings))
        return fail(
            fmt::format("run {} is a {} with other settings: {}", info.name, info.kind, info.settings.dump()),
            {}, "give the same settings, or another name");
      return info;
    }
    wanted.name = request.run;
    return archive.begin(wanted);
  }
  if (!request.begin_new) {
    CAPSTONE_TRY(auto all, archive.runs());
    std::reverse(all.begin(), all.end());
    for (const m::RunInfo& info : all)
      if (info.kind == wanted.kind && info.prompt_sha256 == wanted.prompt_sha256 &&
          without_limits(info.settings) == without_limits(wanted.settings))
        return info;
  }
  return archive.begin(wanted);
}

// Judges as `measure` does, one kernel at a time; several threads call it.
class NodeJudge {
 public:
  NodeJudge(const Project& project, const Workspace& workspace, const MachineRequest& request)
      : project_(project), workspace_(workspace), request_(request) {}

  Result<m::Judged> operator()(const m::Node& node, const fs::path& source, bool again) const {
    JudgeRequest asked = request_of(project_.problem, request_.judge);
    asked.candidates.push_back({"llm", source});
    asked.extra_checks = again ? ExtraChecks::kAlways : ExtraChecks::kSometimes;
    // Words on why it is wrong cost a build; only a conversation reads them.
    asked.name_causes = request_.kind == "refine";
    CAPSTONE_TRY(auto measurements, judge(asked, workspace_.resources, quiet));
    m::Judged judged;
    judged.measurement = std::move(measurements.front());
    judged.measurement.candidate = "llm";
    judged.measurement.version = node.name;
    judged.measurement.source_sha256 = node.source_sha256;
    forget_places(judged.measurement, source.parent_path(), workspace_.home);
    forget_places(judged.measurement, project_.root, workspace_.home);
    if (judged.measurement.gate_one != GateOne::kPassed || source.extension() != ".cu") return judged;
    CAPSTONE_CHECK(add_counts(judged, source));
    if (again || request_.kind == "refine") CAPSTONE_CHECK(add_profile(judged, source));
    return judged;
  }

 private:
  Result<void> add_counts(m::Judged& judged, const fs::path& source) const {
    ExplainRequest request{&project_.problem, source, project_.problem.emulate, {}};
    CAPSTONE_TRY(request.device, find_device_like("h100"));
    request.at_measured = true;
    Result<Explanation> counts = explain(request, workspace_.resources, quiet);
    if (counts) {
      counts->candidate = "llm";
      counts->source_sha256 = judged.measurement.source_sha256;
      counts->source = source.filename().string();
      judged.counts = std::move(*counts);
    } else if (counts.error().code == ExitCode::kInterrupted) {
      return fail(counts.error());
    }
    return {};  // what the CPU cannot run has no counts
  }

  Result<void> add_profile(m::Judged& judged, const fs::path& source) const {
    if (judged.measurement.backend != Backend::kCuda) return {};
    ProfileRequest request{&project_.problem, source, project_.problem.measure, {}, std::nullopt, true};
    Result<Profile> found = profile(request, workspace_.resources, quiet);
    if (found) {
      found->csv.clear();
      judged.profile = Json(*found);
    } else if (found.error().code == ExitCode::kInterrupted) {
      return fail(found.error());
    }
    return {};
  }

  const Project& project_;
  const Workspace& workspace_;
  const MachineRequest& request_;
};

// One line in the ledger for each sitting: the report says what the search came to.
Result<void> record_search(const Project& project, const MachineRun& run, const std::string& ended,
                           const Workspace& workspace) {
  const m::Summary s = m::summarise(run.tree, run.info);
  std::string all;
  for (const m::Node& node : run.tree) all += Json(node).dump() + "\n";
  Json body{{"run", run.info.name},
            {"search", run.info.kind},
            {"settings", run.info.settings},
            {"provider", run.info.provider},
            {"prompt_sha256", run.info.prompt_sha256},
            {"with_statement", run.info.with_statement},
            {"kernels", s.judged},
            {"correct", s.correct},
            {"tries", s.spent.tries},
            {"tokens", s.spent.tokens},
            {"money", s.spent.money},
            {"minutes", s.spent.minutes},
            {"best", s.best},
            {"ended", ended},
            {"tree_sha256", sha256_hex(all)}};
  if (s.timed) body["faster"] = s.faster;
  CAPSTONE_TRY(const std::string machine, chain_id(workspace));
  CAPSTONE_CHECK(append_record(project.ledger(), "search", body, machine));
  return {};
}

Result<FileLock> lock_archive(const Project& project) {
  CAPSTONE_CHECK(make_folders(folder_of(project)));
  auto lock = FileLock::acquire(folder_of(project) / "lock", false);
  if (!lock)
    return fail("another `capstone machine` works in this project", folder_of(project).string(),
                "wait for it, or end it: the search goes on with the same command");
  return lock;
}

int default_judges(const Workspace& workspace, const JudgeOptions& options) {
  const bool on_gpu = options.backend == Backend::kCuda ||
                      (options.backend == Backend::kAuto && find_gpu(workspace.resources).has_value());
  if (on_gpu)
    return 2;  // gate one of one beside the times of another: the GPU itself is locked while it times
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

Result<MachineOutcome> search_by_machine(const MachineRequest& request, const Workspace& workspace,
                                         const ProgressSink& progress, const MachineEvents& events) {
  CAPSTONE_TRY(const auto search, m::search_from(request.kind, request.settings));
  CAPSTONE_CHECK(validate(request.judge));
  CAPSTONE_TRY(const Project project, pinned_project_here(workspace));
  CAPSTONE_TRY(const FileLock lock, lock_archive(project));
  CAPSTONE_TRY(const m::Archive archive, m::Archive::open(folder_of(project)));
  CAPSTONE_TRY(PromptInput standard, standard_prompt(workspace, project, request.gpu));
  standard.with_statement = request.with_statement;
  CAPSTONE_TRY(const std::string prompt, render_prompt(standard));

  m::RunInfo wanted;
  wanted.kind = request.kind;
  wanted.settings = request.settings;
  wanted.problem = project.problem.id;
  wanted.problem_digest = project.config.problem_digest;
  wanted.with_statement = request.with_statement;
  wanted.provider = request.provider->description();
  wanted.started = utc_text(static_cast<Instant>(std::time(nullptr)));
  CAPSTONE_TRY(wanted.prompt_sha256, archive.keep(prompt));
  CAPSTONE_TRY(MachineRun run, [&]() -> Result<MachineRun> {
    CAPSTONE_TRY(m::RunInfo info, chosen_run(archive, request, wanted));
    CAPSTONE_TRY(m::Tree tree, archive.tree(info));
    return MachineRun{std::move(info), std::move(tree)};
  }());
  if (run.info.settings != request.settings) {
    CAPSTONE_CHECK(archive.set_settings(run.info, request.settings));
    run.info.settings = request.settings;
  }
  if (events.begun) events.begun(run);

  const int ideas = request.settings.value("ideas", 0);
  const m::Prompts prompts(standard, archive, ideas);
  const NodeJudge node_judge(project, workspace, request);
  m::RunParts parts;
  parts.archive = &archive;
  parts.search = search.get();
  parts.prompts = &prompts;
  parts.provider = request.provider;
  parts.judge = node_judge;
  parts.budget = request.budget;
  parts.ideas = ideas;
  parts.askers = request.askers;
  parts.judges = request.judges > 0 ? request.judges : default_judges(workspace, request.judge);
  parts.changed = events.changed;
  report_step(progress, "asking");
  const std::size_t before = run.tree.size();
  const bool was_done = std::all_of(run.tree.begin(), run.tree.end(),
                                    [](const m::Node& n) { return n.state == m::NodeState::kDone; });
  CAPSTONE_TRY(const std::string ended, m::run(run.info, parts));
  CAPSTONE_TRY(run.info, archive.run(run.info.name));
  CAPSTONE_TRY(run.tree, archive.tree(run.info));
  if (run.tree.size() != before || !was_done) CAPSTONE_CHECK(record_search(project, run, ended, workspace));
  return MachineOutcome{std::move(run), ended};
}

Result<m::Archive> machine_archive(const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  std::error_code code;
  if (!fs::exists(folder_of(project) / "archive.sqlite", code))
    return fail("the machine has no runs here", folder_of(project).string(),
                "begin with: capstone machine sample -k 10");
  return m::Archive::open(folder_of(project));
}

Result<MachineRun> machine_run(const std::string& name, const Workspace& workspace) {
  CAPSTONE_TRY(const m::Archive archive, machine_archive(workspace));
  MachineRun run;
  if (name.empty()) {
    CAPSTONE_TRY(const auto all, archive.runs());
    if (all.empty())
      return fail("the machine has no runs here", {}, "begin with: capstone machine sample -k 10");
    run.info = all.back();
  } else {
    CAPSTONE_TRY(run.info, archive.run(name));
  }
  CAPSTONE_TRY(run.tree, archive.tree(run.info));
  return run;
}

Result<NodeTexts> texts_of(const m::Node& node, const Workspace& workspace) {
  CAPSTONE_TRY(const m::Archive archive, machine_archive(workspace));
  NodeTexts texts;
  const auto read = [&](const std::string& sha256, std::string& into) -> Result<void> {
    if (sha256.empty()) return {};
    CAPSTONE_TRY(into, archive.text(sha256));
    return {};
  };
  CAPSTONE_CHECK(read(node.prompt_sha256, texts.prompt));
  CAPSTONE_CHECK(read(node.reply_sha256, texts.reply));
  CAPSTONE_CHECK(read(node.source_sha256, texts.code));
  if (node.measurement_sha256.empty()) return texts;
  Feedback feedback;
  CAPSTONE_TRY(const std::string measurement, archive.text(node.measurement_sha256));
  feedback.measurement = Json::parse(measurement).get<Measurement>();
  if (!node.explanation_sha256.empty()) {
    CAPSTONE_TRY(const std::string counts, archive.text(node.explanation_sha256));
    feedback.counts = Json::parse(counts).get<Explanation>();
  }
  texts.verdict = describe(feedback);
  return texts;
}

Result<Json> environment_of(const MachineRun& run, const Workspace& workspace) {
  CAPSTONE_TRY(const m::Archive archive, machine_archive(workspace));
  return environment_of(run.tree, archive);
}

Result<Json> environment_of(const m::Tree& tree, const m::Archive& archive) {
  for (auto node = tree.rbegin(); node != tree.rend(); ++node) {
    if (node->measurement_sha256.empty()) continue;
    CAPSTONE_TRY(const std::string measurement, archive.text(node->measurement_sha256));
    return Json::parse(measurement).get<Measurement>().environment;
  }
  return Json::object();
}

Result<AddReplyOutcome> take_node(const MachineRun& run, const m::Node& node, const JudgeOptions& judge,
                                  const Workspace& workspace, const ProgressSink& progress) {
  if (node.reply_sha256.empty() || node.kind != m::NodeKind::kKernel)
    return fail(fmt::format("node {} has no kernel", node.name), {},
                "capstone machine show lists those that have");
  CAPSTONE_TRY(const NodeTexts texts, texts_of(node, workspace));
  AddReplyRequest request;
  request.reply = texts.reply;
  request.sent = texts.prompt;
  request.model = node.model.empty() ? run.info.provider : node.model;
  request.settings = fmt::format("node {} of {}", node.name, run.info.name);
  request.judge = judge;
  return add_reply(request, workspace, progress, {});
}

Result<fs::path> write_machine_page(const MachineRun& run, const std::string& out,
                                    const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const m::Archive archive, machine_archive(workspace));
  CAPSTONE_TRY(const fs::path path, output_path(workspace, out, Output::kPage));
  const MachinePage page{&run.info, &run.tree, &archive, project.problem.title, workspace.resources.version};
  CAPSTONE_TRY(const std::string html, machine_page(page, workspace.resources.templates()));
  CAPSTONE_CHECK(write_file_atomic(path, html));
  return path;
}

namespace {

// A flat conversation, see machine::flat_text(), as messages again would be guesswork; the tree has its
// parts.
Result<Json> messages_of(const m::Archive& archive, const m::Tree& tree, const m::Node& node,
                         const std::function<std::string(std::string)>& mask) {
  std::vector<const m::Node*> turns{&node};
  // Only a refinement has conversations: a kernel without an idea below another kernel.
  while (turns.back()->idea.empty())
    if (const m::Node* parent = m::find_node(tree, turns.back()->parent))
      turns.push_back(parent);
    else
      break;
  Json messages = Json::array();
  for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
    CAPSTONE_TRY(const std::string prompt, archive.text((*turn)->prompt_sha256));
    CAPSTONE_TRY(const std::string reply, archive.text((*turn)->reply_sha256));
    constexpr std::string_view kUser = "\n----- user -----\n\n";
    const std::size_t last = prompt.rfind(kUser);
    messages.push_back({{"role", "user"},
                        {"content", mask(last == std::string::npos || turn == turns.rbegin()
                                             ? prompt
                                             : prompt.substr(last + kUser.size()))}});
    messages.push_back({{"role", "assistant"}, {"content", mask(reply)}});
  }
  return messages;
}

}  // namespace

Result<int> write_machine_traces(const std::string& out, const Workspace& workspace) {
  CAPSTONE_TRY(const Project project, project_here(workspace));
  CAPSTONE_TRY(const m::Archive archive, machine_archive(workspace));
  CAPSTONE_TRY(const fs::path path, output_path(workspace, out, Output::kRecords));
  const auto mask = [&](std::string text) {
    text = to_utf8(text);
    for (const std::string& secret : {project.root.string(), workspace.home, workspace.user, workspace.host})
      if (secret.size() > 2) text = replace_all(text, secret, "***");
    for (const Person& member : project.config.members)
      for (const std::string& secret : {member.name, member.id, member.email})
        if (secret.size() > 2) text = replace_all(text, secret, "***");
    return text;
  };
  CAPSTONE_TRY(const auto runs, archive.runs());
  std::string lines;
  int count = 0;
  for (const m::RunInfo& info : runs) {
    CAPSTONE_TRY(const m::Tree tree, archive.tree(info));
    for (const m::Node& node : tree) {
      if (node.kind != m::NodeKind::kKernel || node.state != m::NodeState::kDone) continue;
      CAPSTONE_TRY(Json messages, messages_of(archive, tree, node, mask));
      const bool compiled = !node.source_sha256.empty() && node.verdict != label_of(GateOne::kBuildFailed);
      const bool timed = node.fitness && node.fitness->measured;
      Json line{{"problem", info.problem},
                {"run", info.name},
                {"node", node.name},
                {"turns", static_cast<int>(messages.size()) / 2},
                {"messages", std::move(messages)},
                {"verdict", node.verdict},
                {"compiled", compiled},
                {"correct", node.correct()},
                {"speedup", timed ? Json(node.fitness->value.point) : Json(nullptr)},
                {"speedup_low", timed ? Json(node.fitness->value.low) : Json(nullptr)},
                {"reward", node.correct() ? (timed ? node.fitness->low() : 1.0) : 0.0}};
      lines += line.dump() + "\n";
      ++count;
    }
  }
  CAPSTONE_CHECK(write_file_atomic(path, lines));
  return count;
}

}  // namespace capstone::workflows
