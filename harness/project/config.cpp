// Reads capstone.yaml strictly, because a mistyped key would silently lose a team member's name.
#include <fmt/format.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/json.h"
#include "harness/base/spelling.h"
#include "harness/model/yaml.h"
#include "harness/project/project.h"

namespace capstone {
namespace {

constexpr int kConfigSchema = 1;

class ConfigReader {
 public:
  explicit ConfigReader(std::string file) : file_(std::move(file)) {}

  Result<ProjectConfig> read(const YamlNode& root) const {
    CAPSTONE_CHECK(check_keys(root, {"schema", "problem", "members", "started_from", "created"}));
    CAPSTONE_CHECK(check_schema(root));
    ProjectConfig config;
    CAPSTONE_CHECK(read_problem(root, config));
    CAPSTONE_TRY(config.started_from, text(root, "started_from", false));
    CAPSTONE_TRY(config.created, text(root, "created", false));
    CAPSTONE_CHECK(read_members(root, config));
    return config;
  }

 private:
  tl::unexpected<Error> refuse(const YamlNode& at, std::string what, std::string hint = {}) const {
    return fail(std::move(what), fmt::format("{}:{}:{}", file_, at.line, at.column), std::move(hint));
  }

  Result<void> check_keys(const YamlNode& map, const std::vector<std::string>& known) const {
    if (!map.is_map()) return refuse(map, "expected a mapping, found " + describe(map));
    for (const auto& [key, value] : map.entries) {
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      auto meant = nearest(key.text, known);
      return refuse(key, fmt::format("unknown key `{}`", key.text),
                    meant ? fmt::format("did you mean `{}`?", *meant)
                          : fmt::format("known here: {}", fmt::join(known, ", ")));
    }
    return {};
  }

  Result<void> check_schema(const YamlNode& root) const {
    const YamlNode* schema = root.find("schema");
    if (!schema)
      return refuse(root, "`schema` is missing", fmt::format("add the line `schema: {}`", kConfigSchema));
    if (schema->is_scalar() && schema->text == std::to_string(kConfigSchema)) return {};
    const bool newer = schema->is_scalar() && !schema->text.empty() && schema->text.size() < 6 &&
                       schema->text.find_first_not_of("0123456789") == std::string::npos &&
                       std::stoi(schema->text) > kConfigSchema;
    return refuse(*schema,
                  fmt::format("this capstone reads schema {}, not {}", kConfigSchema, describe(*schema)),
                  newer ? "the project was made by a newer capstone; update capstone" : "");
  }

  Result<std::string> text(const YamlNode& map, const std::string& key, bool required) const {
    const YamlNode* node = map.find(key);
    if (!node || node->is_null()) {
      if (required) return refuse(node ? *node : map, fmt::format("`{}` is missing", key));
      return std::string();
    }
    if (!node->is_scalar())
      return refuse(*node, fmt::format("`{}` must be text, not {}", key, describe(*node)));
    if (required && node->text.empty()) return refuse(*node, fmt::format("`{}` is empty", key));
    return node->text;
  }

  Result<void> read_problem(const YamlNode& root, ProjectConfig& config) const {
    const YamlNode* problem = root.find("problem");
    if (!problem)
      return refuse(root, "`problem` is missing", "it holds the id and the digest of the pinned problem");
    CAPSTONE_CHECK(check_keys(*problem, {"id", "digest"}));
    CAPSTONE_TRY(config.problem_id, text(*problem, "id", true));
    CAPSTONE_TRY(config.problem_digest, text(*problem, "digest", true));
    const std::string& digest = config.problem_digest;
    if (digest.size() == 64 && digest.find_first_not_of("0123456789abcdef") == std::string::npos) return {};
    return refuse(*problem->find("digest"), "`digest` must be 64 hexadecimal digits (SHA-256)",
                  "`capstone init` wrote it; restore the line from version control");
  }

  Result<void> read_members(const YamlNode& root, ProjectConfig& config) const {
    const YamlNode* members = root.find("members");
    if (!members)
      return refuse(root, "`members` is missing", "list the authors: `members:`, then `- name: \"Ada\"`");
    if (members->is_null()) return {};
    if (!members->is_list()) return refuse(*members, "`members` must be a list, not " + describe(*members));
    for (const YamlNode& member : members->items) {
      CAPSTONE_CHECK(check_keys(member, {"name", "id", "email"}));
      Person person;
      CAPSTONE_TRY(person.name, text(member, "name", true));
      CAPSTONE_TRY(person.id, text(member, "id", false));
      CAPSTONE_TRY(person.email, text(member, "email", false));
      config.members.push_back(std::move(person));
    }
    return {};
  }

  std::string file_;
};

// A JSON string is a valid double-quoted YAML scalar, so any name survives, even `null` or `- x: #`.
std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<ProjectConfig> read_config(const std::filesystem::path& file) {
  CAPSTONE_TRY(const std::string bytes, read_file(file, std::size_t{1} << 20));
  YamlLimits limits;
  limits.bytes = 64u << 10;
  CAPSTONE_TRY(const YamlNode root, parse_yaml(bytes, file.string(), limits));
  return ConfigReader(file.string()).read(root);
}

std::string config_text(const ProjectConfig& config) {
  std::string text =
      "# Who works on this project, and on which problem. You may edit the members; do not change the other "
      "fields.\n";
  text += fmt::format("schema: {}\nproblem:\n  id: {}\n  digest: {}\n", kConfigSchema,
                      quoted(config.problem_id), quoted(config.problem_digest));
  if (!config.started_from.empty()) text += "started_from: " + quoted(config.started_from) + "\n";
  if (!config.created.empty()) text += "created: " + quoted(config.created) + "\n";
  text += config.members.empty() ? "members: []\n" : "members:\n";
  for (const Person& person : config.members) {
    text += "  - name: " + quoted(person.name) + "\n";
    if (!person.id.empty()) text += "    id: " + quoted(person.id) + "\n";
    if (!person.email.empty()) text += "    email: " + quoted(person.email) + "\n";
  }
  return text;
}

}  // namespace capstone
