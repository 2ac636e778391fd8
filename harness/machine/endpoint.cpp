// The file of endpoints, which lies outside of every project: it leads to keys.
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/machine/provider.h"
#include "harness/model/yaml.h"

namespace capstone::machine {
namespace {

class EndpointReader {
 public:
  EndpointReader(fs::path file, Environment env) : file_(std::move(file)), env_(env) {}

  Result<Endpoint> read(const YamlNode& root, const std::string& name) const {
    CAPSTONE_CHECK(check_keys(root, {"models"}));
    const YamlNode* models = root.find("models");
    if (!models || !models->is_map() || models->entries.empty())
      return refuse(root, "`models` is missing or empty",
                    "write: models: {NAME: {url: …, model: …, key_env: …}}");
    std::vector<std::string> names;
    for (const auto& [key, value] : models->entries) {
      names.push_back(key.text);
      if (key.text == name || (name.empty() && models->entries.size() == 1)) return endpoint(value);
    }
    const auto meant = nearest(name, names);
    return refuse(
        *models,
        name.empty() ? "several models are configured"
                     : fmt::format("there is no model `{}`", printable(name)),
        meant ? fmt::format("did you mean `{}`?", *meant) : "name one: --model " + join(names, "|"));
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
        return refuse(key, "a key does not belong into this file",
                      "write key_env: NAME_OF_A_VARIABLE, or key_file: a file that only you can read");
      const auto meant = nearest(key.text, known);
      return refuse(key, fmt::format("unknown key `{}`", key.text),
                    meant ? fmt::format("did you mean `{}`?", *meant) : "known here: " + join(known, ", "));
    }
    return {};
  }

  Result<std::string> text(const YamlNode& map, const char* key, bool required) const {
    const YamlNode* node = map.find(key);
    if (node && node->is_scalar() && !node->text.empty()) return node->text;
    if (node) return refuse(*node, fmt::format("`{}` must be text, not {}", key, describe(*node)));
    if (required) return refuse(map, fmt::format("`{}` is missing", key));
    return std::string();
  }

  template <class T>
  Result<void> number(const YamlNode& map, const char* key, T low, T& into) const {
    const YamlNode* node = map.find(key);
    if (!node) return {};
    const char* end = node->text.data() + node->text.size();
    T value{};
    const auto [stopped, error] = std::from_chars(node->text.data(), end, value);
    if (!node->is_scalar() || error != std::errc() || stopped != end || !(value >= low))
      return refuse(*node,
                    fmt::format("`{}` must be a number of at least {}, not {}", key, low, describe(*node)));
    into = value;
    return {};
  }

  Result<Endpoint> endpoint(const YamlNode& map) const {
    CAPSTONE_CHECK(check_keys(map, {"url", "model", "key_env", "key_file", "price_in", "price_out",
                                    "temperature", "max_tokens", "timeout", "requests_per_minute"}));
    Endpoint e;
    CAPSTONE_TRY(e.url, text(map, "url", true));
    CAPSTONE_TRY(e.model, text(map, "model", true));
    CAPSTONE_CHECK(number(map, "price_in", 0.0, e.price_in));
    CAPSTONE_CHECK(number(map, "price_out", 0.0, e.price_out));
    CAPSTONE_CHECK(number(map, "temperature", 0.0, e.temperature));
    CAPSTONE_CHECK(number(map, "max_tokens", 1, e.max_tokens));
    CAPSTONE_CHECK(number(map, "timeout", 1.0, e.timeout_seconds));
    CAPSTONE_CHECK(number(map, "requests_per_minute", 0.0, e.requests_per_minute));
    CAPSTONE_CHECK(read_key(map, e));
    return e;
  }

  Result<void> read_key(const YamlNode& map, Endpoint& e) const {
    CAPSTONE_TRY(const std::string variable, text(map, "key_env", false));
    CAPSTONE_TRY(const std::string key_file, text(map, "key_file", false));
    if (!variable.empty() && !key_file.empty())
      return refuse(map, "key_env and key_file contradict each other", "keep one of them");
    if (!variable.empty()) {
      e.key = env_(variable);
      if (e.key.empty())
        return refuse(*map.find("key_env"), fmt::format("the environment variable {} is not set", variable),
                      fmt::format("export {}=…", variable));
    }
    if (key_file.empty()) return {};
    const fs::path path = file_.parent_path() / key_file;
    struct stat entry {};
    if (::stat(path.c_str(), &entry) == 0 && (entry.st_mode & (S_IRGRP | S_IROTH)))
      return fail("other users can read the key", path.string(), "chmod 600 " + path.string());
    CAPSTONE_TRY(const std::string bytes, read_file(path, 1 << 16));
    e.key = std::string(trim(bytes));
    return {};
  }

  fs::path file_;
  Environment env_;
};

// A project is handed in whole.
Result<void> require_outside_of_projects(const fs::path& file) {
  std::error_code code;
  for (fs::path folder = fs::weakly_canonical(file, code).parent_path(); !folder.empty();
       folder = folder.parent_path()) {
    if (fs::exists(folder / "capstone.yaml", code))
      return fail("the file of endpoints lies in a project", file.string(),
                  "a project is handed in whole: move the file to ~/.config/capstone/models.yaml");
    if (folder == folder.root_path()) break;
  }
  return {};
}

}  // namespace

Result<Endpoint> read_endpoint(const fs::path& file, const std::string& name, Environment env) {
  CAPSTONE_CHECK(require_outside_of_projects(file));
  CAPSTONE_TRY(const std::string bytes, read_file(file, 1 << 20));
  CAPSTONE_TRY(const YamlNode root, parse_yaml(bytes, file.string()));
  return EndpointReader(file, env).read(root, name);
}

}  // namespace capstone::machine
