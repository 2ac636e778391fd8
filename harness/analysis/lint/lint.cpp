#include "harness/analysis/lint/lint.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <random>
#include <set>

#include "harness/analysis/lint/reference.h"
#include "harness/analysis/lint/triviality.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/correctness/cases.h"
#include "harness/correctness/dtype_convert.h"
#include "harness/judge/reference_oracle.h"
#include "harness/project/hints.h"

namespace capstone {
namespace {

constexpr int kDraws = 200;
constexpr std::size_t kLeastDistinct = 8;  // distinct hidden sizes; fewer can be listed in a kernel
constexpr double kGpuMemory = 8e9;         // [B] of a student's GPU
constexpr double kContexts = 1.5e9;        // [B] GPU host, baseline and candidate: about 0.5 GB each
constexpr double kFlush = 2 * 128e6;       // [B] twice the largest L2 cache of current GPUs
constexpr int kBufferSets = 2;             // inputs and outputs, rotated

/// RAII temporary directory.
class Scratch {
 public:
  explicit Scratch(const Resources& resources)
      : path_(resources.cache / fmt::format("lint-{}", ::getpid())) {}
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class Lint {
 public:
  Lint(fs::path folder, const Resources& resources, const Narration& say)
      : folder_(std::move(folder)), resources_(resources), say_(say), scratch_(resources) {}

  Result<std::vector<LintCheck>> run() {
    auto problem = load_problem(folder_);
    if (!problem) return not_loaded(problem.error());
    problem_ = std::move(*problem);
    auto oracle = load_oracle(problem_, resources_);
    if (!oracle) {
      if (oracle.error().code == ExitCode::kEnvironment) return fail(oracle.error());
      return not_loaded(oracle.error());
    }
    ok("loads", fmt::format("{}, {} parameters, {} sizes under `check`", problem_.id,
                            problem_.signature.size(), problem_.check.size()));
    check_name();
    check_statement();
    check_hints();
    check_cost();
    check_memory();
    check_hidden_sizes();
    say_("the triviality audit");
    CAPSTONE_CHECK(check_answers(*oracle));
    CAPSTONE_CHECK(make_folders(scratch_.path()));
    if (problem_.oracle_is_reference) {
      checks_.push_back({State::kNotRun, "baseline", "PyTorch eager is the baseline", {}, {}});
      checks_.push_back({State::kNotRun, "reference", "it is the oracle", {}, {}});
      return std::move(checks_);
    }
    // Do not run sizes that cannot be drawn or that need gigabytes.
    if (has_failed("hidden sizes")) {
      checks_.push_back({State::kNotRun, "baseline", "needs hidden sizes", {}, {}});
    } else {
      say_("baseline.cu on the CPU");
      CAPSTONE_CHECK(check_baseline());
    }
    say_("reference.py");
    CAPSTONE_TRY(LintCheck reference, check_reference(problem_, *oracle, resources_, scratch_.path()));
    checks_.push_back(std::move(reference));
    return std::move(checks_);
  }

 private:
  using State = LintCheck::State;

  void ok(std::string name, std::string what) {
    checks_.push_back({State::kOk, std::move(name), std::move(what), {}, {}});
  }
  void failed(std::string name, std::string what, fs::path where, std::string hint) {
    checks_.push_back({State::kFailed, std::move(name), std::move(what), where.string(), std::move(hint)});
  }
  bool has_failed(std::string_view name) const {
    return std::any_of(checks_.begin(), checks_.end(),
                       [&](const LintCheck& c) { return c.name == name && c.state == State::kFailed; });
  }
  fs::path definition() const { return problem_.folder / "problem.yaml"; }

  // A problem is found by its folder, and records name its id. A project's pinned copy is called problem/.
  void check_name() {
    std::error_code code;
    const fs::path folder = fs::weakly_canonical(problem_.folder, code);
    if (folder.filename() == problem_.id || fs::exists(folder.parent_path() / "capstone.yaml", code)) return;
    failed(
        "loads",
        fmt::format("the id is {}, but the folder is called {}", problem_.id, folder.filename().string()),
        definition(),
        fmt::format("rename the folder to {}, or write `id: {}`", problem_.id, folder.filename().string()));
  }

  std::vector<LintCheck> not_loaded(const Error& error) {
    failed("loads", error.what, error.where, error.hint);
    return std::move(checks_);
  }

  // Whether a name occurs as a whole word: "max" does not mention `x`.
  static bool mentions(const std::string& text, const std::string& name) {
    auto inside_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at == 0 || !inside_word(text[at - 1])) && (end == text.size() || !inside_word(text[end])))
        return true;
    }
    return false;
  }

  void check_statement() {
    const fs::path file = problem_.folder / "statement.md";
    auto text = read_file(file, 1u << 20);
    if (!text)
      return failed("statement", text.error().what, file,
                    "describe what the kernel computes, its tensors and what to look out for");
    std::vector<std::string> missing;
    for (const Parameter& parameter : problem_.signature)
      if (!mentions(*text, parameter.name)) missing.push_back(parameter.name);
    if (missing.empty()) return ok("statement", "mentions every parameter");
    failed("statement", "does not mention " + join(missing, ", "), file,
           "describe each parameter of launch()");
  }

  void check_hints() {
    std::error_code code;
    const fs::path own = problem_.folder / "hints.md";
    const auto hints = hints_of(problem_, resources_);
    if (hints) return ok("hints", fmt::format("{} for `capstone hint`", hints->size()));
    if (fs::exists(own, code))
      return failed("hints", hints.error().what, hints.error().where, hints.error().hint);
    checks_.push_back({State::kNotRun, "hints", "the problem has none", {}, {}});
  }

  std::vector<std::pair<std::string, Sizes>> listed_sizes() const {
    std::vector<std::pair<std::string, Sizes>> all;
    for (std::size_t i = 0; i < problem_.check.size(); ++i)
      all.emplace_back(fmt::format("check {}", i), problem_.check[i]);
    all.emplace_back("measure", problem_.measure);
    all.emplace_back("emulate", problem_.emulate);
    for (const auto& [name, sizes] : problem_.published) all.emplace_back("published " + name, sizes);
    return all;
  }

  // What is wrong with the cost at these sizes; empty if nothing.
  std::string cost_fault(const Sizes& sizes) const {
    auto cost = cost_at(problem_, sizes);
    if (!cost) return cost.error().what;
    for (const auto& [name, value] : {std::pair{"flops", cost->flops}, {"bytes", cost->bytes}})
      if (!std::isfinite(value) || value <= 0) return fmt::format("{} is {}", name, number_text(value));
    return {};
  }

  void check_cost() {
    for (const auto& [name, sizes] : listed_sizes())
      if (std::string fault = cost_fault(sizes); !fault.empty())
        return failed("cost", fmt::format("{} at {} ({})", fault, name, to_string(sizes)), definition(),
                      "`cost` counts work: it must be above zero at every size");
    auto cost = cost_at(problem_, problem_.measure);
    ok("cost", fmt::format("{:.3g} FLOP and {:.3g} bytes at `measure`, {:.2f} FLOP a byte", cost->flops,
                           cost->bytes, cost->intensity()));
  }

  void check_memory() {
    auto layout = make_layout(problem_, problem_.measure, 0);
    if (!layout) return failed("memory", layout.error().what, definition(), layout.error().hint);
    double bytes = kContexts + kFlush + kBufferSets * static_cast<double>(layout->bytes);
    for (const TensorSlot& slot : layout->tensors)
      if (problem_.signature[static_cast<std::size_t>(slot.parameter)].is_written())
        bytes += static_cast<double>(slot.bytes);
    const std::string sum = fmt::format(
        "a run at `measure` takes {:.1f} GB (two sets of tensors, expected outputs, flush buffer, contexts)",
        bytes / 1e9);
    if (bytes <= kGpuMemory) return ok("memory", sum);
    failed("memory", sum + fmt::format(", more than the {:.0f} GB of a student's card", kGpuMemory / 1e9),
           definition(), "make `measure` smaller; a paper's shape belongs under `published`");
  }

  // What is wrong with one drawn set of sizes; empty if nothing.
  std::string draw_fault(const Sizes& sizes, const DrawLimits& limits) const {
    if (auto fits = admissible(problem_, sizes); !fits || !*fits) return "breaks `where`";
    if (std::string fault = cost_fault(sizes); !fault.empty()) return "cost: " + fault;
    auto bytes = tensor_bytes_at(problem_, sizes);
    if (!bytes) return bytes.error().what;
    // `cost` is a claim of the definition; the allocated bytes are a fact.
    if (static_cast<double>(*bytes) > 4 * limits.bytes)
      return fmt::format("the tensors take {:.3g} bytes, four times the cap that `cost` keeps",
                         static_cast<double>(*bytes));
    for (const Parameter& parameter : problem_.signature) {
      if (parameter.is_scalar()) continue;
      auto elements = elements_at(parameter, sizes);
      if (!elements || *elements < 1) return fmt::format("{} is empty", parameter.name);
    }
    return {};
  }

  void check_hidden_sizes() {
    if (problem_.vary.empty())
      return checks_.push_back(
          {State::kNotRun, "hidden sizes", "`vary` is empty: hidden sizes are not drawn", {}, {}});
    const DrawLimits limits;
    std::mt19937_64 random(1);
    std::set<Sizes> distinct;
    for (int i = 0; i < kDraws; ++i) {
      auto sizes = draw_sizes(
          problem_, [&] { return random(); }, Cost{limits.flops, limits.bytes});
      if (!sizes) return failed("hidden sizes", sizes.error().what, definition(), sizes.error().hint);
      if (std::string fault = draw_fault(*sizes, limits); !fault.empty())
        return failed("hidden sizes", fmt::format("a draw ({}) {}", to_string(*sizes), fault), definition(),
                      "narrow `vary`, or add the relation to `where`");
      distinct.insert(std::move(*sizes));
    }
    if (distinct.size() < kLeastDistinct)
      return failed("hidden sizes",
                    fmt::format("{} draws give only {} different sizes: a kernel could list them", kDraws,
                                distinct.size()),
                    definition(), "widen `vary`");
    ok("hidden sizes",
       fmt::format("{} draws, {} of them different, all within the caps", kDraws, distinct.size()));
  }

  // Correct answers pass, tricks fail.
  Result<void> check_answers(const Oracle& oracle) {
    CAPSTONE_TRY(const std::string refused, right_answer_refused(oracle));
    CAPSTONE_TRY(const auto tricks, audit_triviality(problem_, oracle));
    std::vector<Trick> lower, others;
    for (const Trick& trick : tricks) (trick.name == "lower_precision" ? lower : others).push_back(trick);
    if (!refused.empty())
      failed("tolerance", refused, definition(),
             "a correct value, rounded once to the output's type, must pass: raise `rtol`, or fix the "
             "oracle's scale");
    else
      judge_tricks("tolerance", lower,
                   lower.empty() ? "correct values pass; there is no lower precision to distinguish"
                                 : "correct values pass; those of lower precision fail",
                   "lower `rtol` and `atol`, fix the oracle's scale, or give the reason under `because: "
                   "{lower_precision: …}`");
    judge_tricks("triviality", others, fmt::format("{} tricks tried, none of them passes", others.size()),
                 "choose other inputs or sizes under `check`, tighten the tolerance, or give the reason "
                 "under `because`");
    return {};
  }

  void judge_tricks(const std::string& name, const std::vector<Trick>& tricks, const std::string& summary,
                    const char* hint) {
    std::vector<std::string> passing, excused;
    for (const Trick& trick : tricks) {
      if (!trick.acceptable())
        passing.push_back(trick.what);
      else if (!trick.caught)
        excused.push_back(fmt::format("{} (because: {})", trick.what, trick.because));
    }
    if (!passing.empty()) return failed(name, "passes gate one: " + join(passing, "; "), definition(), hint);
    ok(name, summary + (excused.empty() ? "" : "; allowed by the problem: " + join(excused, "; ")));
  }

  // Where the oracle's own values, rounded to the output's type, would be refused; empty if nowhere.
  Result<std::string> right_answer_refused(const Oracle& oracle) {
    std::uint64_t seed = 1;
    for (const Sizes& sizes : problem_.check) {
      CAPSTONE_TRY(const PreparedCase prepared,
                   prepare_case(problem_, {"right", sizes, seed++, Battery::kPlain}, oracle, 0));
      std::vector<std::byte> after = prepared.image;
      for (const PreparedCase::Output& output : prepared.outputs) {
        const TensorSlot& slot = prepared.layout.tensors[static_cast<std::size_t>(output.slot)];
        const DType type = problem_.signature[static_cast<std::size_t>(output.parameter)].dtype;
        for (std::size_t i = 0; i < output.expected.size(); ++i) {
          if (std::isnan(output.expected[i]) || !(output.scale[i] >= 0))
            return fmt::format("the oracle gives {} with scale {} at {}", number_text(output.expected[i]),
                               number_text(output.scale[i]), to_string(sizes));
          store_rounded(type, after.data() + slot.offset, static_cast<std::int64_t>(i), output.expected[i]);
        }
      }
      const CaseResult result = examine(problem_, prepared, prepared.image, after, 1);
      if (!result.passed)
        return fmt::format("the expected values themselves fail at {}: {}", to_string(sizes), result.problem);
    }
    return std::string();
  }

  Result<void> check_baseline() {
    const fs::path file = problem_.folder / "baseline.cu";
    auto text = read_file(file, 4u << 20);
    if (!text) {
      failed("baseline", text.error().what, file,
             "write the baseline to be timed; it must follow the kernel contract");
      return {};
    }
    // Libraries do not run on the CPU, so a baseline has a replacement for them under this macro.
    const fs::path copy = scratch_.path() / "baseline.cu";
    CAPSTONE_CHECK(write_file_atomic(
        copy, "#ifndef CAPSTONE_EMULATED\n#define CAPSTONE_EMULATED 1\n#endif\n#line 1\n" + *text));
    JudgeRequest request;
    request.problem = &problem_;
    request.candidates = {{"baseline.cu", copy}};
    request.options.backend = Backend::kEmulated;
    request.options.hidden_cases = 2;
    request.options.timeout_seconds = 60;
    request.timing = false;
    request.options.quick = true;
    CAPSTONE_TRY(const auto measurements, judge(request, resources_, say_));
    const Measurement& m = measurements.front();
    if (m.gate_one == GateOne::kPassed) {
      std::set<std::string> cases;
      for (const CaseResult& c : m.cases) cases.insert(c.id);
      ok("baseline", fmt::format("builds for the CPU and agrees with the oracle in {} cases", cases.size()));
    } else if (m.gate_one == GateOne::kBuildFailed) {
      const auto& error = m.build.first_error;
      failed("baseline", "does not build: " + (error ? error->text : "no error line"),
             error && error->line ? fmt::format("{}:{}", file.string(), error->line) : file.string(),
             "with CAPSTONE_EMULATED defined it must build without the libraries under `link`");
    } else {
      const CaseResult* bad = m.first_failure();
      failed("baseline",
             fmt::format("{}: {}{}", label_of(m.gate_one), bad ? bad->problem : "no reason",
                         bad && bad->sizes.is_object() ? " at " + bad->sizes.dump() : ""),
             file,
             "either the baseline or the oracle is wrong" +
                 (bad && !bad->hint.empty() ? "; " + bad->hint : std::string()));
    }
    return {};
  }

  fs::path folder_;
  const Resources& resources_;
  const Narration& say_;
  Scratch scratch_;
  Problem problem_;
  std::vector<LintCheck> checks_;
};

}  // namespace

Result<std::vector<LintCheck>> lint_problem(const fs::path& folder, const Resources& resources,
                                            const Narration& say) {
  std::error_code code;
  if (!fs::is_directory(folder, code))
    return fail("no such folder", folder.string(),
                "give the folder of a problem, or an id: capstone problems");
  return Lint(folder, resources, say).run();
}

bool passes(const std::vector<LintCheck>& checks) {
  return std::none_of(checks.begin(), checks.end(),
                      [](const LintCheck& c) { return c.state == LintCheck::State::kFailed; });
}

}  // namespace capstone
