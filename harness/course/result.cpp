#include "harness/course/result.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"

namespace capstone {
namespace {

constexpr std::array<std::string_view, 7> kStates{"queued", "building", "checking",    "measuring",
                                                  "graded", "failed",   "needs_mentor"};
constexpr std::array<std::string_view, 12> kFaults{"",
                                                   "machine",
                                                   "damaged",
                                                   "refused",
                                                   "not_a_project",
                                                   "unknown_problem",
                                                   "nothing_to_judge",
                                                   "ambiguous",
                                                   "ledger",
                                                   "contradicted",
                                                   "not_judgeable",
                                                   "unsupported"};

template <class Enum, std::size_t N>
Enum parse(const std::array<std::string_view, N>& names, const std::string& text) {
  auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) throw std::invalid_argument("unknown value " + text);
  return static_cast<Enum>(found - names.begin());
}

std::vector<std::string> clean(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) out.push_back(to_utf8(text));
  return out;
}

}  // namespace

std::string_view name_of(GradingState state) { return kStates[static_cast<std::size_t>(state)]; }
std::string_view name_of(GradingFault fault) { return kFaults[static_cast<std::size_t>(fault)]; }

GradingState state_of(GradingFault fault) {
  switch (fault) {
    case GradingFault::kNone:
      return GradingState::kGraded;
    case GradingFault::kAmbiguous:
    case GradingFault::kLedger:
    case GradingFault::kContradicted:
    case GradingFault::kNotJudgeable:
    case GradingFault::kUnsupported:
      return GradingState::kNeedsMentor;
    default:
      return GradingState::kFailed;
  }
}

const Measurement* SubmissionResult::of(const std::string& candidate) const {
  for (const Measurement& m : judged)
    if (m.candidate == candidate) return &m;
  return nullptr;
}

double SubmissionResult::suggested_total() const {
  double sum = 0;
  for (const SuggestedMark& mark : suggested) sum += mark.points;
  return sum;
}

std::vector<std::string> SubmissionResult::all_findings() const {
  std::vector<std::string> all = findings;
  all.insert(all.end(), cohort_findings.begin(), cohort_findings.end());
  return all;
}

void to_json(Json& json, const SubmissionResult& r) {
  const GradingInputs& in = r.inputs;
  json = {{"schema_version", kResultSchema},
          {"name", r.name},
          {"path", to_utf8(r.path)},
          {"origin", r.origin},
          {"state", name_of(r.state)},
          {"fault", name_of(r.fault)},
          {"why", to_utf8(r.why)},
          {"hint", to_utf8(r.hint)},
          {"problem", to_utf8(r.problem)},
          {"inputs",
           {{"files", in.files},
            {"problem", in.problem},
            {"rubric", in.rubric},
            {"tool", in.tool},
            {"device", in.device},
            {"driver", in.driver},
            {"options", in.options}}},
          {"judged", r.judged},
          {"claims", r.claims},
          {"left_out", clean(r.left_out)},
          {"notes", clean(r.notes)},
          {"findings", clean(r.findings)},
          {"cohort_findings", clean(r.cohort_findings)},
          {"ledger", {{"lines", r.lines}, {"measurements", r.measurements}}},
          {"started", r.started},
          {"finished", r.finished}};
  if (r.prediction) json["prediction"] = *r.prediction;
  json["members"] = Json::array();
  for (const Person& p : r.members)
    json["members"].push_back(
        {{"name", to_utf8(p.name)}, {"id", to_utf8(p.id)}, {"email", to_utf8(p.email)}});
  json["vouchers"] = Json::array();
  for (const Voucher& v : r.vouchers)
    json["vouchers"].push_back({{"key", v.key}, {"measurements", v.measurements}});
  json["suggested"] = Json::array();
  for (const SuggestedMark& s : r.suggested)
    json["suggested"].push_back({{"criterion", s.criterion},
                                 {"weight", s.weight},
                                 {"points", s.points},
                                 {"because", to_utf8(s.because)}});
}

void from_json(const Json& json, SubmissionResult& r) {
  json.at("name").get_to(r.name);
  json.at("path").get_to(r.path);
  r.origin = json.at("origin").get<Origin>();
  r.state = parse<GradingState>(kStates, json.at("state"));
  r.fault = parse<GradingFault>(kFaults, json.at("fault"));
  json.at("why").get_to(r.why);
  json.at("hint").get_to(r.hint);
  json.at("problem").get_to(r.problem);
  const Json& in = json.at("inputs");
  r.inputs = {in.at("files"),  in.at("problem"), in.at("rubric"), in.at("tool"),
              in.at("device"), in.at("driver"),  in.at("options")};
  json.at("judged").get_to(r.judged);
  json.at("claims").get_to(r.claims);
  json.at("left_out").get_to(r.left_out);
  json.at("notes").get_to(r.notes);
  r.findings = json.value("findings", r.findings);  // results of older versions have none of these
  r.cohort_findings = json.value("cohort_findings", r.cohort_findings);
  if (json.contains("ledger")) {
    json["ledger"].at("lines").get_to(r.lines);
    json["ledger"].at("measurements").get_to(r.measurements);
  }
  json.at("started").get_to(r.started);
  json.at("finished").get_to(r.finished);
  if (json.contains("prediction")) r.prediction = json["prediction"].get<Prediction>();
  for (const Json& p : json.at("members")) r.members.push_back({p.at("name"), p.at("id"), p.at("email")});
  for (const Json& v : json.value("vouchers", Json::array()))
    r.vouchers.push_back({v.at("key"), v.at("measurements")});
  for (const Json& s : json.at("suggested"))
    r.suggested.push_back({s.at("criterion"), s.at("weight"), s.at("points"), s.at("because")});
}

Result<void> write_result(const SubmissionResult& result, const fs::path& file) {
  CAPSTONE_CHECK(make_folders(file.parent_path()));
  return write_file_atomic(file, Json(result).dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Result<SubmissionResult> read_result(const fs::path& file) {
  CAPSTONE_TRY(std::string text, read_file(file, 256u << 20));
  Json json = parse_recorded(text);
  if (!json.is_object()) return fail("not a result file", file.string(), "grade the submission again");
  if (int schema = json.value("schema_version", 0); schema < 1 || schema > kResultSchema)
    return fail(fmt::format("the result has schema {}; this version reads 1 to {}", schema, kResultSchema),
                file.string(), "grade the submission again");
  try {
    return json.get<SubmissionResult>();
  } catch (const std::exception& problem) {
    return fail(std::string("not a result file: ") + problem.what(), file.string(),
                "grade the submission again");
  }
}

}  // namespace capstone
