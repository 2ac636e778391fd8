#include <algorithm>
#include <map>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/project/ledger/chain.h"
#include "harness/project/ledger/ledger.h"
#include "harness/project/ledger/stored.h"

namespace capstone {
namespace {

std::string at_line(const Line& line, const std::string& text) {
  return "line " + std::to_string(line.number) + ": " + text;
}

// How much a measurement says about its version: 0 nothing, 1 something, 2 everything.
int weight(const Measurement& m) {
  if (m.gate_one == GateOne::kMachineFault || m.gate_one == GateOne::kNotJudgeable) return 0;
  return m.backend == Backend::kCuda ? 2 : 1;
}

// "v10" → 10, "attempt-2" → 2; any other text sorts first.
long number_of(const std::string& version) {
  std::size_t digits = version.find_last_not_of("0123456789") + 1;
  return digits < version.size() && version.size() - digits < 10 ? std::stol(version.substr(digits)) : 0;
}

void interpret(const Record& record, LedgerView& view) {
  if (record.kind == "prediction") view.predictions.push_back(record.body.get<Prediction>());
  if (record.kind == "attempt") view.attempts.push_back(record.body.get<Attempt>());
  if (record.kind == "explanation") view.explanations.push_back(record.body.get<Explanation>());
  if (record.kind == "measurement") {
    auto measurement = record.body.get<Measurement>();
    auto& list = measurement.candidate == "llm" ? view.llm : view.human;
    list.push_back(std::move(measurement));
  }
}

std::string newer_schema(int schema) {
  return "written by a newer capstone (schema_version " + std::to_string(schema) + ", this one reads up to " +
         std::to_string(kLedgerSchema) + "); update capstone to read it";
}

// The reason why a line cannot be read, if any; readable records are added to the view.
std::optional<std::string> take_line(const Line& line, ChainFollower& chain, LedgerView& view) {
  auto header = header_of(line.text);
  Json json = header ? parse_recorded(line.text) : Json(Json::value_t::discarded);
  if (json.is_discarded())
    return line.ended ? "not a record; the line is damaged" : "torn: the last line is incomplete";
  std::optional<std::string> damage;
  chain.follow(line, *header, damage);
  if (header->schema > kLedgerSchema) return newer_schema(header->schema);
  try {
    Record record = json.get<Record>();
    view.records.push_back(std::move(record));
    interpret(view.records.back(), view);
  } catch (const std::exception& error) {
    return "its " + header->kind + " cannot be read: " + error.what();
  }
  return damage;
}

const std::vector<Measurement>& list_of(const LedgerView& view, const std::string& candidate) {
  return candidate == "llm" ? view.llm : view.human;
}

// An explanation made before the first measurement gets its version now.
void name_explained(LedgerView& view) {
  for (Explanation& e : view.explanations) {
    if (!e.version.empty() || e.source_sha256.empty()) continue;
    for (const Measurement& m : list_of(view, e.candidate))
      if (m.source_sha256 == e.source_sha256) e.version = m.version;
  }
}

bool has_speedup(const Measurement& m) {
  return m.backend == Backend::kCuda && m.measured && m.measured->speedup;
}

}  // namespace

Result<LedgerView> read_ledger(const fs::path& path) {
  auto bytes = read_ledger_text(path);
  if (!bytes) {
    bytes.error().hint = "`capstone init` creates the ledger at .capstone/ledger.jsonl";
    return fail(bytes.error());
  }
  LedgerView view;
  ChainFollower chain;
  for (const Line& line : lines_of(*bytes))
    if (auto damage = take_line(line, chain, view)) view.damage.push_back(at_line(line, *damage));
  name_explained(view);
  return view;
}

std::vector<const Measurement*> LedgerView::versions(const std::string& candidate) const {
  std::map<std::string, const Measurement*> last;
  for (const Measurement& each : list_of(*this, candidate)) {
    const Measurement*& kept = last[each.version];
    if (!kept || weight(each) >= weight(*kept)) kept = &each;
  }
  std::vector<const Measurement*> ordered;
  for (const auto& [version, measurement] : last) ordered.push_back(measurement);
  std::stable_sort(ordered.begin(), ordered.end(), [](const Measurement* a, const Measurement* b) {
    return number_of(a->version) < number_of(b->version);
  });
  return ordered;
}

const Measurement* LedgerView::best(const std::string& candidate) const {
  const Measurement *fastest = nullptr, *last = nullptr;
  for (const Measurement* each : versions(candidate)) {
    if (each->gate_one != GateOne::kPassed) continue;
    last = each;
    if (!has_speedup(*each)) continue;
    if (!fastest || each->measured->speedup->point > fastest->measured->speedup->point) fastest = each;
  }
  return fastest ? fastest : last;
}

std::string LedgerView::reason(const std::string& candidate, const std::string& version) const {
  for (const Measurement& each : list_of(*this, candidate))
    if (each.version == version && !trim(each.reason).empty()) return each.reason;
  return {};
}

std::optional<double> LedgerView::expected_speedup(const std::string& candidate,
                                                   const std::string& version) const {
  for (const Measurement& each : list_of(*this, candidate))
    if (each.version == version && each.expected_speedup) return each.expected_speedup;
  return std::nullopt;
}

const Explanation* LedgerView::explanation(const std::string& candidate, const std::string& version) const {
  const Explanation* last = nullptr;
  for (const Explanation& each : explanations)
    if (each.candidate == candidate && each.version == version) last = &each;
  return last;
}

const Measurement* LedgerView::find(const std::string& version) const {
  for (const char* candidate : {"human", "llm"})
    for (const Measurement* each : versions(candidate))
      if (each->version == version) return each;
  return nullptr;
}

}  // namespace capstone
