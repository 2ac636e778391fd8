#include "harness/project/together.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "harness/base/files.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr std::size_t kMaxSource = std::size_t{16} << 20;

// The lines of a source without indentation; a line without letters or digits says nothing by itself.
std::vector<std::string> lines_in(const std::string& source) {
  std::vector<std::string> lines;
  for (const std::string& line : split(source, '\n')) {
    const std::string text(trim(line));
    if (std::any_of(text.begin(), text.end(), [](unsigned char c) { return std::isalnum(c) != 0; }))
      lines.push_back(text);
  }
  return lines;
}

using Counted = std::map<std::string, int>;  // a line, and how often it stands there
Counted counted(const std::vector<std::string>& lines) {
  Counted all;
  for (const std::string& line : lines) ++all[line];
  return all;
}

class History {
 public:
  History(const Project& project, const LedgerView& ledger) : project_(project), ledger_(ledger) {}

  std::vector<TogetherStep> run() {
    const std::vector<const Measurement*> versions = ledger_.versions("together");
    for (const Record& record : ledger_.records) {
      if (!record.body.is_object()) continue;
      const auto text = [&](const char* key) {
        const auto at = record.body.find(key);
        return at != record.body.end() && at->is_string() ? printable(at->get<std::string>()) : std::string();
      };
      const std::string candidate = text("candidate"), digest = text("source_sha256");
      if (record.kind == "together") {
        before_ = counted(kept(digest));
      } else if (record.kind == "attempt") {
        add_attempt(record);
      } else if (record.kind == "explanation" || record.kind == "profile") {
        note_profile(record.kind, candidate, text("version"));
      } else if (record.kind == "measurement" && candidate == "together") {
        const std::string version = text("version");
        const auto judged = std::find_if(versions.begin(), versions.end(),
                                         [&](const Measurement* m) { return m->version == version; });
        if (judged != versions.end() && seen_.insert(version).second) step(**judged, digest);
      } else if (record.kind == "measurement") {
        add(candidate == "llm" ? model_ : human_, digest);
      }
    }
    return std::move(steps_);
  }

 private:
  // The lines of a source that the project keeps by its digest; none where it is missing.
  std::vector<std::string> kept(const std::string& digest) const {
    if (digest.size() != 64) return {};
    const auto text = read_file(project_.sources() / (digest + ".cu"), kMaxSource);
    return text ? lines_in(*text) : std::vector<std::string>();
  }

  // What was taken out of a reply lies with it, measured or not.
  void add_attempt(const Record& record) {
    const auto number = record.body.find("number");
    if (number == record.body.end() || !number->is_number_integer()) return;
    if (const auto text = read_file(project_.attempt_kernel(number->get<int>()), kMaxSource))
      for (std::string& line : lines_in(*text)) model_.insert(std::move(line));
  }

  void add(std::set<std::string>& lines, const std::string& digest) const {
    for (std::string& line : kept(digest)) lines.insert(std::move(line));
  }

  void note_profile(const std::string& kind, const std::string& candidate, const std::string& version) {
    if (candidate.empty()) return;
    const std::string what = fmt::format("{} of {}", kind == "profile" ? "profile" : "counts",
                                         version.empty() ? candidate : version);
    if (std::find(profiled_.begin(), profiled_.end(), what) == profiled_.end()) profiled_.push_back(what);
  }

  void count(WhoseLines& into, const std::string& line, int times) const {
    const bool human = human_.contains(line), model = model_.contains(line);
    (human && model ? into.both : human ? into.human : model ? into.model : into.fresh) += times;
  }

  void step(const Measurement& judged, const std::string& digest) {
    TogetherStep step;
    step.version = judged.version;
    step.judged = &judged;
    step.profiled = join(profiled_, ", ");
    profiled_.clear();
    const Counted now = counted(kept(digest));
    step.source_there = !now.empty();
    for (const auto& [line, times] : now) {
      count(step.lines, line, times);
      const auto old = before_.find(line);
      if (const int more = times - (old == before_.end() ? 0 : old->second); more > 0)
        count(step.added, line, more);
    }
    for (const auto& [line, times] : before_) {
      const auto left = now.find(line);
      step.removed += std::max(0, times - (left == now.end() ? 0 : left->second));
    }
    if (step.source_there) before_ = now;
    steps_.push_back(std::move(step));
  }

  const Project& project_;
  const LedgerView& ledger_;
  std::set<std::string> human_, model_, seen_;
  std::vector<std::string> profiled_;
  Counted before_;
  std::vector<TogetherStep> steps_;
};

}  // namespace

std::vector<TogetherStep> together_history(const Project& project, const LedgerView& ledger) {
  return History(project, ledger).run();
}

std::string together_begun_from(const LedgerView& ledger) {
  std::string from;
  for (const Record& record : ledger.records)
    if (record.kind == "together" && record.body.is_object())
      from = printable(record.body.value("from", std::string()));
  return from;
}

}  // namespace capstone
