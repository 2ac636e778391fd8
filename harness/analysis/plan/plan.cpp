#include "harness/analysis/plan/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/strict_yaml.h"

namespace capstone {
namespace {

constexpr int kLongest = 240;      // [min] of a step: longer is a slip
constexpr int kLongestDemo = 120;  // [s]: a class waits no longer

constexpr PlanStep::Kind kKinds[] = {PlanStep::Kind::kTeach, PlanStep::Kind::kBuild, PlanStep::Kind::kBreak};

class CourseReader : StrictYaml {
 public:
  using StrictYaml::StrictYaml;

  Result<Course> read(const YamlNode& root) {
    CAPSTONE_CHECK(keys(root, {"question", "loop", "halves"}));
    CAPSTONE_TRY(course_.question, text(root, "question"));
    CAPSTONE_TRY(course_.loop, text(root, "loop"));
    const YamlNode& halves = *root.find("halves");
    if (!halves.is_list() || halves.items.empty()) return refuse(halves, "`halves` must be a list");
    for (const YamlNode& half : halves.items) CAPSTONE_CHECK(read_half(half));
    return std::move(course_);
  }

 private:
  Result<void> read_half(const YamlNode& half) {
    CAPSTONE_CHECK(keys(half, {"says", "weeks"}));
    CAPSTONE_TRY(const std::string says, text(half, "says"));
    const YamlNode& weeks = *half.find("weeks");
    if (!weeks.is_map()) return refuse(weeks, "`weeks` must map weeks to sessions, not " + describe(weeks));
    for (const auto& [key, sessions] : weeks.entries) {
      const int next = course_.weeks() + 1;
      CAPSTONE_TRY(const int week, whole(key, "weeks", 1, 52));
      if (week != next) return refuse(key, fmt::format("week {} comes next, not week {}", next, week));
      if (!sessions.is_map() || sessions.entries.empty())
        return refuse(sessions, "a week must map sessions to titles", "{L1: what a GPU is}");
      for (const auto& [id, title] : sessions.entries) {
        const auto same = [&](const CourseSession& known) { return known.id == id.text; };
        if (std::any_of(course_.sessions.begin(), course_.sessions.end(), same))
          return refuse(id, fmt::format("session {} is there twice", id.text));
        CAPSTONE_TRY(std::string words, text_of(title, id.text));
        course_.sessions.push_back({id.text, std::move(words), says, week});
      }
    }
    return {};
  }

  Course course_;
};

class PlanReader : StrictYaml {
 public:
  using StrictYaml::StrictYaml;

  Result<SessionPlan> read(const YamlNode& root) const {
    CAPSTONE_CHECK(keys(root, {"steps", "artifact", "demo", "line", "pitfall", "numbers"}));
    SessionPlan plan;
    CAPSTONE_TRY(plan.line, text(root, "line"));
    const YamlNode& artifact = *root.find("artifact");
    CAPSTONE_CHECK(keys(artifact, {"what", "begin"}));
    CAPSTONE_TRY(plan.artifact, text(artifact, "what"));
    CAPSTONE_TRY(plan.begin, command(artifact, "begin"));
    const YamlNode& demo = *root.find("demo");
    CAPSTONE_CHECK(keys(demo, {"run", "seconds", "shows"}));
    CAPSTONE_TRY(plan.demo, read_command(demo));
    CAPSTONE_TRY(plan.demo_seconds, whole(*demo.find("seconds"), "seconds", 1, kLongestDemo));
    const YamlNode& pitfall = *root.find("pitfall");
    CAPSTONE_CHECK(keys(pitfall, {"thinks", "instead", "run", "shows"}));
    CAPSTONE_TRY(plan.thinks, text(pitfall, "thinks"));
    CAPSTONE_TRY(plan.instead, text(pitfall, "instead"));
    CAPSTONE_TRY(plan.proof, read_command(pitfall));
    CAPSTONE_TRY(const auto steps, list(root, "steps"));
    for (const YamlNode* node : steps) {
      CAPSTONE_TRY(PlanStep step, read_step(*node));
      plan.steps.push_back(std::move(step));
    }
    CAPSTONE_TRY(const auto numbers, list(root, "numbers"));
    for (const YamlNode* node : numbers) {
      CAPSTONE_TRY(PlanNumber number, read_number(*node));
      plan.numbers.push_back(std::move(number));
    }
    return plan;
  }

 private:
  Result<std::vector<const YamlNode*>> list(const YamlNode& root, const std::string& key) const {
    const YamlNode& node = *root.find(key);
    if (!node.is_list() || node.items.empty())
      return refuse(node, fmt::format("`{}` must be a list, not {}", key, describe(node)));
    std::vector<const YamlNode*> items;
    for (const YamlNode& item : node.items) items.push_back(&item);
    return items;
  }

  Result<std::string> command(const YamlNode& map, const std::string& key) const {
    CAPSTONE_TRY(std::string line, text(map, key));
    if (!line.starts_with("capstone "))
      return refuse(*map.find(key), fmt::format("`{}` must be a command of capstone, not `{}`", key, line),
                    "capstone demo coalescing");
    return line;
  }

  Result<PlanCommand> read_command(const YamlNode& map) const {
    PlanCommand one;
    CAPSTONE_TRY(one.run, command(map, "run"));
    CAPSTONE_TRY(one.shows, text(map, "shows"));
    return one;
  }

  // {teach: 15, what: …}
  Result<PlanStep> read_step(const YamlNode& node) const {
    CAPSTONE_CHECK(keys(node, {"what"}, {"teach", "build", "break"}));
    if (node.entries.size() != 2)
      return refuse(node, "a step is either teach, build or break, with its minutes", "{teach: 15, what: …}");
    PlanStep step;
    CAPSTONE_TRY(step.what, text(node, "what"));
    for (const PlanStep::Kind kind : kKinds)
      if (const YamlNode* minutes = node.find(name_of(kind))) {
        step.kind = kind;
        CAPSTONE_TRY(step.minutes, whole(*minutes, name_of(kind), 1, kLongest));
      }
    return step;
  }

  Result<PlanNumber> read_number(const YamlNode& node) const {
    CAPSTONE_CHECK(keys(node, {}, {"ladder", "rungs", "course", "means"}));
    PlanNumber number;
    const bool quoted = node.find("course") != nullptr;
    if (quoted == (node.find("ladder") != nullptr) || quoted == (node.find("rungs") != nullptr))
      return refuse(node, "a number is either of a ladder's rungs or of the course",
                    "{ladder: sum, rungs: [01_tree]} or {course: \"93.7 %\"}");
    if (quoted) {
      CAPSTONE_TRY(number.course, text(node, "course"));
    } else {
      CAPSTONE_TRY(number.ladder, text(node, "ladder"));
      CAPSTONE_TRY(number.rungs, texts(*node.find("rungs"), "rungs"));
    }
    if (node.find("means")) {
      CAPSTONE_TRY(number.means, text(node, "means"));
    }
    return number;
  }
};

Result<YamlNode> yaml_file(const fs::path& file) {
  CAPSTONE_TRY(const std::string bytes, read_file(file, YamlLimits{}.bytes));
  return parse_yaml(bytes, file.string());
}

}  // namespace

std::string_view name_of(PlanStep::Kind kind) {
  return kind == PlanStep::Kind::kTeach ? "teach" : kind == PlanStep::Kind::kBuild ? "build" : "break";
}

int SessionPlan::minutes_of(PlanStep::Kind kind) const {
  int sum = 0;
  for (const PlanStep& step : steps)
    if (step.kind == kind) sum += step.minutes;
  return sum;
}

int SessionPlan::minutes() const {
  int sum = 0;
  for (const PlanStep::Kind kind : kKinds) sum += minutes_of(kind);
  return sum;
}

Result<Course> load_course(const fs::path& reference_kernels) {
  const fs::path file = reference_kernels / "course.yaml";
  CAPSTONE_TRY(const YamlNode root, yaml_file(file));
  return CourseReader(file).read(root);
}

Result<CourseSession> find_session(const Course& course, const std::string& id) {
  std::string wanted = id;
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string> known;
  for (const CourseSession& session : course.sessions) {
    if (session.id == wanted) return session;
    known.push_back(session.id);
  }
  return fail("no session is called " + id, {}, "sessions: " + join(known, ", "));
}

Result<SessionPlan> load_plan(const fs::path& file) {
  CAPSTONE_TRY(const YamlNode root, yaml_file(file));
  CAPSTONE_TRY(SessionPlan plan, PlanReader(file).read(root));
  plan.id = file.stem();
  return plan;
}

Result<SessionPlan> plan_of(const CourseSession& session, const fs::path& reference_kernels) {
  const fs::path file = reference_kernels / "plans" / (session.id + ".yaml");
  std::error_code code;
  if (!fs::exists(file, code))
    return fail(fmt::format("session {} has no plan", session.id), file.string(),
                "write one: docs/how-to/plan-a-session.md");
  return load_plan(file);
}

}  // namespace capstone
