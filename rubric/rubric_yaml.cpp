#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "rubric/rubric.h"

namespace capstone {

namespace {

// Reads one rubric. The first problem is thrown as an Error, which load_rubric catches: returning a Result
// from every step would hide the reading behind the checks.
class RubricReader {
 public:
  explicit RubricReader(std::string file) : file_(std::move(file)) {}

  Rubric read(const YAML::Node& root) {
    expect_keys(root, {"schema", "criteria"});
    Rubric rubric;
    rubric.schema = number<int>(root, "schema");
    if (rubric.schema != 1)
      error(root["schema"], fmt::format("rubric schema {} is not known", rubric.schema),
            "this version reads schema 1");
    std::set<std::string> ids;
    for (const YAML::Node& node : list(root, "criteria")) {
      rubric.criteria.push_back(criterion(node));
      if (!ids.insert(rubric.criteria.back().id).second)
        error(node, fmt::format("criterion '{}' appears twice", rubric.criteria.back().id),
              "remove or rename one");
    }
    int sum = 0;
    for (const Criterion& c : rubric.criteria) sum += c.weight;
    if (sum != 100)
      error(root["criteria"], fmt::format("the weights sum to {}, not 100", sum),
            "change the weight of a criterion");
    return rubric;
  }

 private:
  [[noreturn]] void error(const YAML::Node& node, std::string what, std::string hint) const {
    YAML::Mark mark = node.Mark();
    throw Error{std::move(what), fmt::format("{}:{}:{}", file_, mark.line + 1, mark.column + 1),
                std::move(hint), ExitCode::kUsage};
  }

  void expect_keys(const YAML::Node& node, const std::vector<std::string>& allowed) const {
    if (!node.IsMap()) error(node, "expected a mapping here", "keys: " + join(allowed, ", "));
    std::set<std::string> seen;
    for (const auto& pair : node) {
      std::string key = pair.first.as<std::string>();
      if (std::find(allowed.begin(), allowed.end(), key) == allowed.end()) {
        std::optional<std::string> near = nearest(key, allowed);
        error(pair.first, fmt::format("unknown key '{}'", key),
              near ? fmt::format("did you mean '{}'?", *near) : "keys: " + join(allowed, ", "));
      }
      if (!seen.insert(key).second)
        error(pair.first, fmt::format("key '{}' appears twice", key), "remove one");
    }
  }

  YAML::Node need(const YAML::Node& node, const char* key) const {
    YAML::Node child = node[key];
    if (!child) error(node, fmt::format("'{}' is missing", key), "add this key");
    return child;
  }

  YAML::Node list(const YAML::Node& node, const char* key) const {
    YAML::Node child = need(node, key);
    if (!child.IsSequence() || child.size() == 0)
      error(child, fmt::format("'{}' must be a list with at least one item", key), "");
    return child;
  }

  std::string text(const YAML::Node& node, const char* key) const {
    YAML::Node child = need(node, key);
    if (!child.IsScalar() || trim(child.Scalar()).empty())
      error(child, fmt::format("'{}' must be a text that is not empty", key), "");
    return child.Scalar();
  }

  template <class T>
  T number(const YAML::Node& node, const char* key) const {
    YAML::Node child = need(node, key);
    T value{};
    if (!YAML::convert<T>::decode(child, value)) error(child, fmt::format("'{}' must be a number", key), "");
    return value;
  }

  Criterion criterion(const YAML::Node& node) const {
    expect_keys(node, {"id", "title", "weight", "looks_for", "rule", "cap", "checks", "questions", "levels"});
    Criterion c;
    c.id = text(node, "id");
    c.title = text(node, "title");
    c.looks_for = text(node, "looks_for");
    c.weight = number<int>(node, "weight");
    if (c.weight <= 0) error(node["weight"], "a weight must be above 0", "");
    std::string rule = text(node, "rule");
    if (rule == "all_or_nothing")
      c.rule = Criterion::Rule::kAllOrNothing;
    else if (rule != "share")
      error(node["rule"], fmt::format("unknown rule '{}'", rule), "rules: share, all_or_nothing");
    if (node["cap"]) c.cap = number<double>(node, "cap");
    if (!(c.cap >= 0 && c.cap <= 1)) error(node["cap"], "'cap' must lie between 0 and 1", "");
    for (const YAML::Node& child : list(node, "checks")) c.checks.push_back(check(child));
    for (const YAML::Node& child : list(node, "questions")) c.questions.push_back(child.as<std::string>());
    for (const YAML::Node& child : list(node, "levels")) c.levels.push_back(level(child));
    expect_cover(node["levels"], c);
    return c;
  }

  Check check(const YAML::Node& node) const {
    expect_keys(node, {"id", "share", "says", "required", "gate"});
    Check c;
    c.id = text(node, "id");
    c.says = text(node, "says");
    if (node["gate"]) c.gate = number<bool>(node, "gate");
    if (!c.gate || node["share"]) c.share = number<double>(node, "share");
    std::vector<std::string> known = check_ids();
    if (std::find(known.begin(), known.end(), c.id) == known.end()) {
      std::optional<std::string> near = nearest(c.id, known);
      error(node["id"], fmt::format("unknown check '{}'", c.id),
            near ? fmt::format("did you mean '{}'?", *near) : "checks: " + join(known, ", "));
    }
    if (!(c.share > 0 || (c.gate && c.share == 0)) || !std::isfinite(c.share))
      error(node["share"], "a share must be above 0", "");
    if (node["required"]) c.required = number<bool>(node, "required");
    return c;
  }

  Level level(const YAML::Node& node) const {
    expect_keys(node, {"name", "from", "to", "text"});
    return {text(node, "name"), text(node, "text"), number<double>(node, "from"), number<double>(node, "to")};
  }

  // The levels go from the best to the worst, from the weight down to 0, in half marks, without a gap or an
  // overlap.
  void expect_cover(const YAML::Node& node, const Criterion& c) const {
    if (c.levels.size() != 4)
      error(node, fmt::format("'{}' has {} levels, not 4", c.id, c.levels.size()),
            "list four levels, the best first");
    double next = c.weight;
    for (const Level& level : c.levels) {
      if (level.to != next || level.from > level.to)
        error(node, fmt::format("level '{}' of '{}' should end at {}", level.name, c.id, next),
              "levels go from the weight down to 0 in half marks");
      next = level.from - 0.5;
    }
    if (next != -0.5)
      error(node, fmt::format("the last level of '{}' does not reach 0", c.id),
            "start the last level at 0: `from: 0`");
  }

  std::string file_;
};

}  // namespace

Result<Rubric> load_rubric(const std::filesystem::path& file) {
  CAPSTONE_TRY(std::string bytes, read_file(file, std::size_t{256} << 10));
  try {
    Rubric rubric = RubricReader(file.string()).read(YAML::Load(bytes));
    rubric.digest = sha256_hex(bytes);
    return rubric;
  } catch (const Error& error) {
    return fail(error);
  } catch (const YAML::Exception& e) {
    return fail(fmt::format("not valid YAML: {}", e.msg),
                fmt::format("{}:{}:{}", file.string(), e.mark.line + 1, e.mark.column + 1), "");
  }
}

}  // namespace capstone
