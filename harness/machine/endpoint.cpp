// Reads endpoints strictly: a mistyped key would silently change what a comparison of models compares.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/machine/provider.h"
#include "harness/model/yaml.h"

namespace capstone::machine {
namespace {

// What lies in a project is archived and handed in.
Result<void> require_outside_projects(const fs::path& file, const std::string& what) {
  std::error_code code;
  for (fs::path folder = fs::weakly_canonical(fs::absolute(file, code), code).parent_path();;
       folder = folder.parent_path()) {
    if (fs::exists(folder / "capstone.yaml", code))
      return fail(fmt::format("{} lies in a capstone project, which is handed in whole", what), file.string(),
                  "move it out of the project, for example to ~/.config/capstone");
    if (folder == folder.parent_path()) return {};
  }
}

class EndpointReader {
 public:
  EndpointReader(fs::path file, Environment env) : file_(std::move(file)), env_(env) {}

  Result<Endpoint> read(const YamlNode& root, const std::string& name) const {
    CAPSTONE_CHECK(check_keys(root, {"models"}));
    const YamlNode* models = root.find("models");
    if (!models || !models->is_map() || models->entries.empty())
      return refuse(models ? *models : root, "`models` is missing or names no model",
                    "write `models:`, and below it a name with its `url` and `model`");
    CAPSTONE_TRY(const YamlNode* chosen, choose(*models, name));
    return endpoint(*chosen);
  }

 private:
  tl::unexpected<Error> refuse(const YamlNode& at, std::string what, std::string hint = {}) const {
    return fail(std::move(what), fmt::format("{}:{}:{}", file_.string(), at.line, at.column),
                std::move(hint));
  }

  Result<void> check_keys(const YamlNode& map, const std::vector<std::string>& known) const {
    if (!map.is_map()) return refuse(map, "expected a mapping, found " + describe(map));
    for (const auto& [key, value] : map.entries) {
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      if (key.text == "key")
        return refuse(key, "a key is never written into this file",
                      "name the environment variable (`key_env`) or the file (`key_file`) that holds it");
      const auto meant = nearest(key.text, known);
      return refuse(key, fmt::format("unknown key `{}`", key.text),
                    meant ? fmt::format("did you mean `{}`?", *meant)
                          : fmt::format("known here: {}", fmt::join(known, ", ")));
    }
    return {};
  }

  Result<const YamlNode*> choose(const YamlNode& models, const std::string& name) const {
    if (name.empty() && models.entries.size() == 1) return &models.entries[0].second;
    if (const YamlNode* found = models.find(name)) return found;
    std::vector<std::string> names;
    for (const auto& [key, value] : models.entries) names.push_back(key.text);
    const std::string all = "the file has: " + join(names, ", ");
    if (name.empty()) return refuse(models, "the file has several models: name one", all);
    const auto meant = nearest(name, names);
    return refuse(models, fmt::format("no model `{}` in this file", name),
                  meant ? fmt::format("did you mean `{}`?", *meant) : all);
  }

  Result<Endpoint> endpoint(const YamlNode& map) const {
    CAPSTONE_CHECK(check_keys(map, {"url", "model", "key_env", "key_file", "price_in", "price_out",
                                    "temperature", "max_tokens", "timeout", "requests_per_minute"}));
    Endpoint made;
    CAPSTONE_TRY(made.url, text(map, "url"));
    CAPSTONE_TRY(made.model, text(map, "model"));
    for (const char* key : {"url", "model"})
      if (!map.find(key)) return refuse(map, fmt::format("`{}` is missing", key));
    CAPSTONE_TRY(made.key, secret(map));
    CAPSTONE_CHECK(number(map, "price_in", 0, 1e6, made.price_in));
    CAPSTONE_CHECK(number(map, "price_out", 0, 1e6, made.price_out));
    CAPSTONE_CHECK(number(map, "temperature", 0, 2, made.temperature));
    CAPSTONE_CHECK(number(map, "timeout", 1, 86400, made.timeout_seconds));
    CAPSTONE_CHECK(number(map, "requests_per_minute", 0, 1e6, made.requests_per_minute));
    double tokens = made.max_tokens;
    CAPSTONE_CHECK(number(map, "max_tokens", 0, 1e7, tokens));
    if (tokens != std::floor(tokens))
      return refuse(*map.find("max_tokens"), "`max_tokens` must be a whole number");
    made.max_tokens = static_cast<int>(tokens);
    return made;
  }

  // Empty: the key is not there.
  Result<std::string> text(const YamlNode& map, const std::string& key) const {
    const YamlNode* node = map.find(key);
    if (!node) return std::string();
    if (!node->is_scalar() || node->text.empty())
      return refuse(*node, fmt::format("`{}` must be text, not {}", key, describe(*node)));
    return node->text;
  }

  Result<void> number(const YamlNode& map, const std::string& key, double least, double most,
                      double& into) const {
    const YamlNode* node = map.find(key);
    if (!node) return {};
    const char* const end = node->text.data() + node->text.size();
    double value = 0;
    const auto [stop, problem] = std::from_chars(node->text.data(), end, value);
    if (!node->is_scalar() || node->quoted || problem != std::errc() || stop != end ||
        !(value >= least && value <= most))
      return refuse(*node, fmt::format("`{}` must be a number from {} to {:.0f}, not {}", key, least, most,
                                       describe(*node)));
    into = value;
    return {};
  }

  Result<std::string> secret(const YamlNode& map) const {
    CAPSTONE_TRY(const std::string variable, text(map, "key_env"));
    CAPSTONE_TRY(const std::string path, text(map, "key_file"));
    if (!variable.empty() && !path.empty())
      return refuse(*map.find("key_file"), "`key_env` and `key_file` are both given", "keep one of them");
    if (!path.empty()) return key_in(path);
    if (variable.empty()) return std::string();
    const std::string key(trim(env_(variable)));
    if (key.empty())
      return refuse(*map.find("key_env"), fmt::format("the environment variable {} is not set", variable),
                    fmt::format("it holds the endpoint's key: export {}=…", variable));
    return key;
  }

  Result<std::string> key_in(const std::string& path) const {
    const fs::path key_file =
        path.starts_with("~/") ? fs::path(env_("HOME")) / path.substr(2) : file_.parent_path() / path;
    CAPSTONE_CHECK(require_outside_projects(key_file, "the file with the key"));
    CAPSTONE_TRY(const std::string bytes, read_file(key_file, 64u << 10));
    struct stat info {};
    if (::stat(key_file.c_str(), &info) != 0 || (info.st_mode & 077) != 0)
      return fail("others can read the file with the key", key_file.string(),
                  fmt::format("chmod 600 {}", key_file.string()));
    const std::string key(trim(bytes));
    if (key.empty() || key.find('\n') != std::string::npos)
      return fail("the file with the key must hold one line, the key", key_file.string());
    return key;
  }

  fs::path file_;
  Environment env_;
};

}  // namespace

Result<Endpoint> read_endpoint(const fs::path& file, const std::string& name, Environment env) {
  CAPSTONE_CHECK(require_outside_projects(file, "the file of models"));
  YamlLimits limits;
  CAPSTONE_TRY(const std::string bytes, read_file(file, limits.bytes));
  CAPSTONE_TRY(const YamlNode root, parse_yaml(bytes, file.string(), limits));
  return EndpointReader(file, env).read(root, name);
}

}  // namespace capstone::machine
