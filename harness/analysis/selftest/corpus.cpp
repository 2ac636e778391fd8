#include "harness/analysis/selftest/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/model/yaml.h"

namespace capstone {
namespace {

constexpr int kRows = 28;

const std::vector<GateOne>& catching_verdicts() {
  static const std::vector<GateOne> all{GateOne::kWrong, GateOne::kUndefined, GateOne::kBuildFailed,
                                        GateOne::kCrashed, GateOne::kTimedOut};
  return all;
}

// The typed view of one manifest.
class ManifestReader {
 public:
  explicit ManifestReader(const fs::path& file) : file_(file.string()) {}

  tl::unexpected<Error> refuse(const YamlNode& at, std::string what, std::string hint = {}) const {
    return fail(std::move(what), fmt::format("{}:{}:{}", file_, at.line, at.column), std::move(hint));
  }

  Result<void> keys(const YamlNode& map, const std::vector<std::string>& required,
                    const std::vector<std::string>& optional) const {
    if (!map.is_map()) return refuse(map, "expected a mapping, found " + describe(map));
    std::vector<std::string> known = required;
    known.insert(known.end(), optional.begin(), optional.end());
    for (const auto& [key, value] : map.entries) {
      if (std::find(known.begin(), known.end(), key.text) != known.end()) continue;
      auto meant = nearest(key.text, known);
      return refuse(key, fmt::format("unknown key `{}`", key.text),
                    meant ? fmt::format("did you mean `{}`?", *meant)
                          : fmt::format("known here: {}", fmt::join(known, ", ")));
    }
    for (const std::string& key : required)
      if (!map.find(key))
        return refuse(map, fmt::format("`{}` is missing", key), fmt::format("add `{}:`", key));
    return {};
  }

  Result<std::string> text(const YamlNode& map, const std::string& key) const {
    const YamlNode* node = map.find(key);
    if (!node) return std::string();
    if (!node->is_scalar() || trim(node->text).empty())
      return refuse(*node, fmt::format("`{}` must be text, not {}", key, describe(*node)));
    return node->text;
  }

  Result<double> number(const YamlNode& map, const std::string& key, double low, double high,
                        double otherwise) const {
    const YamlNode* node = map.find(key);
    if (!node) return otherwise;
    double value = 0;
    const char* end = node->text.data() + node->text.size();
    auto [stop, code] = std::from_chars(node->text.data(), end, value);
    if (!node->is_scalar() || node->quoted || code != std::errc() || stop != end || value < low ||
        value > high)
      return refuse(
          *node, fmt::format("`{}` must be a number from {} to {}, not {}", key, low, high, describe(*node)));
    return value;
  }

  Result<std::string> one_of(const YamlNode& map, const std::string& key,
                             const std::vector<std::string>& words, const std::string& otherwise) const {
    const YamlNode* node = map.find(key);
    if (!node) return otherwise;
    if (node->is_scalar() && std::find(words.begin(), words.end(), node->text) != words.end())
      return node->text;
    return refuse(*node, fmt::format("`{}` cannot be {}", key, describe(*node)),
                  fmt::format("one of: {}", fmt::join(words, ", ")));
  }

  // {caught: [WRONG]}, {passes: true}, … with an optional `because`.
  Result<Expectation> expectation(const YamlNode& node, bool honest, bool replayed) const {
    using Kind = Expectation::Kind;
    CAPSTONE_CHECK(
        keys(node, {}, {"passes", "caught", "label", "not_fooled", "falls_back", "cannot_show", "because"}));
    Expectation result;
    CAPSTONE_TRY(result.because, text(node, "because"));
    int said = 0;
    for (const auto& [key, value] : node.entries) {
      if (key.text == "because") continue;
      ++said;
      if (key.text == "caught") {
        result.kind = Kind::kCaught;
        CAPSTONE_TRY(result.verdicts, verdicts(value));
      } else if (key.text == "label" || key.text == "cannot_show") {
        result.kind = key.text == "label" ? Kind::kLabelled : Kind::kCannotShow;
        CAPSTONE_TRY(result.text, text(node, key.text));
      } else {
        const std::string only = key.text == "falls_back" ? "in-process" : "true";
        if (value.text != only) return refuse(value, fmt::format("`{}` can only be {}", key.text, only));
        result.kind = key.text == "passes"       ? Kind::kPasses
                      : key.text == "not_fooled" ? Kind::kNotFooled
                                                 : Kind::kFallsBack;
      }
    }
    if (said != 1)
      return refuse(node, "exactly one outcome must be promised", "for example {caught: [WRONG]}");
    if (result.kind == Kind::kFallsBack && !replayed)
      return refuse(node, "only `cuda-replayed` can fall back");
    const bool neutral = result.kind == Kind::kCannotShow || result.kind == Kind::kFallsBack;
    if (!neutral && honest != (result.kind == Kind::kPasses))
      return refuse(node, honest ? "an honest kernel must pass" : "a trick must not simply pass",
                    "or write {cannot_show: why}");
    return result;
  }

 private:
  Result<std::vector<GateOne>> verdicts(const YamlNode& list) const {
    if (!list.is_list() || list.items.empty())
      return refuse(list, "`caught` is a list of verdicts, not " + describe(list));
    std::vector<GateOne> result;
    for (const YamlNode& item : list.items) {
      auto it = std::find_if(catching_verdicts().begin(), catching_verdicts().end(), [&](GateOne verdict) {
        return item.is_scalar() && label_of(verdict) == item.text;
      });
      if (it == catching_verdicts().end())
        return refuse(item, fmt::format("{} is not a verdict that catches a trick", describe(item)),
                      "WRONG, UNDEFINED BEHAVIOUR, DOES NOT BUILD, CRASH or TIME-OUT");
      result.push_back(*it);
    }
    return result;
  }

  std::string file_;
};

// "softmax" of the catalogue, or "problems/packed_linear" in the corpus folder.
fs::path problem_folder(const std::string& name, const fs::path& corpus, const Resources& resources) {
  return name.find('/') == std::string::npos ? resources.problems() / name : corpus / name;
}

Result<HostileInput> read_input(const ManifestReader& reader, const YamlNode& root) {
  HostileInput input;
  CAPSTONE_TRY(input.reader,
               reader.one_of(root, "reader", {"reply", "worklog", "problem", "submission"}, ""));
  CAPSTONE_TRY(std::string must, reader.one_of(root, "must", {"be refused", "end"}, "end"));
  input.refused = must == "be refused";
  const YamlNode& node = *root.find("input");
  CAPSTONE_CHECK(reader.keys(node, {}, {"begin", "repeat", "times", "end", "archive"}));
  CAPSTONE_TRY(input.archive, reader.one_of(node, "archive", {"climbs", "absolute", "link", "bomb"}, ""));
  // Not text(): repeating white space is also useful.
  for (auto [key, target] :
       {std::pair{"begin", &input.begin}, std::pair{"repeat", &input.repeat}, std::pair{"end", &input.end}})
    if (const YamlNode* part = node.find(key)) *target = part->text;
  CAPSTONE_TRY(double times, reader.number(node, "times", 1, 1e8, 1));
  input.times = static_cast<std::int64_t>(times);
  if (input.archive.empty() == (input.begin + input.repeat + input.end).empty())
    return reader.refuse(node, "write either `archive`, or text in `begin`, `repeat` and `end`");
  if ((input.reader == "submission") == input.archive.empty())
    return reader.refuse(node, "`archive` and the reader `submission` belong together");
  return input;
}

// Every reference kernel whose folder names a problem.
Result<std::vector<CorpusCase>> expand_ladders(const CorpusCase& ladders, const Resources& resources) {
  std::vector<CorpusCase> all;
  std::error_code code;
  fs::recursive_directory_iterator it(resources.reference_kernels(), code), end;
  for (; !code && it != end; it.increment(code)) {
    const fs::path& path = it->path();
    const fs::path problem = resources.problems() / path.parent_path().filename();
    std::error_code ignored;
    if (path.extension() != ".cu" || !fs::exists(problem / "problem.yaml", ignored)) continue;
    CorpusCase one = ladders;
    one.name = ladders.name + "/" + problem.filename().string() + "/" + path.stem().string();
    one.source = path;
    one.problem = problem;
    all.push_back(std::move(one));
  }
  if (code)
    return fail("cannot read the reference kernels: " + code.message(),
                resources.reference_kernels().string(), {}, ExitCode::kEnvironment);
  return all;
}

}  // namespace

std::string to_string(const Expectation& expectation) {
  using Kind = Expectation::Kind;
  switch (expectation.kind) {
    case Kind::kPasses:
      return "passes";
    case Kind::kCaught: {
      std::vector<std::string> labels;
      for (GateOne verdict : expectation.verdicts) labels.emplace_back(label_of(verdict));
      return join(labels, " or ");
    }
    case Kind::kLabelled:
      return "label: " + expectation.text;
    case Kind::kNotFooled:
      return "not fooled";
    case Kind::kFallsBack:
      return "falls back to host";
    case Kind::kCannotShow:
      return "cannot show";
  }
  return "?";
}

Result<std::vector<CorpusCase>> load_manifest(const fs::path& folder, const Resources& resources) {
  const fs::path file = folder / "manifest.yaml";
  CAPSTONE_TRY(const std::string bytes, read_file(file, YamlLimits{}.bytes));
  CAPSTONE_TRY(const YamlNode root, parse_yaml(bytes, file.string()));
  const ManifestReader reader(file);
  CAPSTONE_TRY(const std::string kind,
               reader.one_of(root, "kind", {"kernel", "build", "input", "ladders"}, "kernel"));
  const std::vector<std::string> ways{"emulated", "cuda-in-process", "cuda-replayed"};
  std::vector<std::string> required{"schema", "row", "what"};
  if (kind == "input")
    required.insert(required.end(), {"reader", "input"});
  else
    required.insert(required.end(), ways.begin(), ways.end());
  if (kind == "kernel" || kind == "build") required.emplace_back("problem");
  std::vector<std::string> optional{"kind", "fools", "timeout"};
  if (kind == "input") optional.emplace_back("must");
  if (kind == "kernel" || kind == "build") optional.emplace_back("needs");
  CAPSTONE_CHECK(reader.keys(root, required, optional));
  if (root.find("schema")->text != "1")
    return reader.refuse(*root.find("schema"), "this capstone reads schema 1");

  CorpusCase corpus_case;
  corpus_case.name = folder.filename().string();
  corpus_case.manifest = file;
  const bool honest = root.find("row")->text == "honest";
  if (!honest) {
    CAPSTONE_TRY(double row, reader.number(root, "row", 1, kRows, 0));
    corpus_case.row = static_cast<int>(row);
  }
  CAPSTONE_TRY(corpus_case.what, reader.text(root, "what"));
  CAPSTONE_TRY(corpus_case.fools, reader.text(root, "fools"));
  if (honest == (root.find("fools") != nullptr))
    return reader.refuse(root, honest ? "an honest kernel has no `fools`"
                                      : "`fools` is missing: say which judge the trick deceives");
  CAPSTONE_TRY(corpus_case.timeout_seconds, reader.number(root, "timeout", 0.1, 600, 10));
  CAPSTONE_TRY(const std::string needs, reader.one_of(root, "needs", {"isolation", "nvcc"}, ""));
  corpus_case.needs_isolation = needs == "isolation";
  corpus_case.needs_nvcc = needs == "nvcc";
  if (kind == "input") {
    CAPSTONE_TRY(corpus_case.input, read_input(reader, root));
    return std::vector<CorpusCase>{std::move(corpus_case)};
  }
  CAPSTONE_TRY(corpus_case.emulated, reader.expectation(*root.find("emulated"), honest, false));
  CAPSTONE_TRY(corpus_case.cuda_in_process, reader.expectation(*root.find("cuda-in-process"), honest, false));
  CAPSTONE_TRY(corpus_case.cuda_replayed, reader.expectation(*root.find("cuda-replayed"), honest, true));
  if (kind == "ladders") return expand_ladders(corpus_case, resources);
  CAPSTONE_TRY(const std::string problem, reader.text(root, "problem"));
  corpus_case.problem = problem_folder(problem, folder.parent_path(), resources);
  std::error_code ignored;
  corpus_case.source = folder / (fs::exists(folder / "kernel.py", ignored) ? "kernel.py" : "kernel.cu");
  if (!fs::exists(corpus_case.problem / "problem.yaml", ignored))
    return reader.refuse(*root.find("problem"), fmt::format("there is no problem `{}`", problem),
                         "write a name of the catalogue, or problems/NAME in the corpus");
  if (!fs::exists(corpus_case.source, ignored))
    return fail("the case has no kernel.cu and no kernel.py", folder.string(),
                "put it next to manifest.yaml");
  return std::vector<CorpusCase>{std::move(corpus_case)};
}

Result<std::vector<CorpusCase>> load_corpus(const Resources& resources) {
  const fs::path corpus = resources.share / "corpus";
  std::vector<CorpusCase> all;
  std::error_code code;
  fs::directory_iterator it(corpus, code), end;
  for (; !code && it != end; it.increment(code)) {
    if (!fs::exists(it->path() / "manifest.yaml", code)) continue;
    CAPSTONE_TRY(auto cases, load_manifest(it->path(), resources));
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  if (code)
    return fail("cannot read the corpus: " + code.message(), corpus.string(),
                "check that capstone is installed completely", ExitCode::kEnvironment);
  std::sort(all.begin(), all.end(), [](const CorpusCase& a, const CorpusCase& b) { return a.name < b.name; });
  return all;
}

}  // namespace capstone
