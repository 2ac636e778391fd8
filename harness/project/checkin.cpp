#include "harness/project/checkin.h"

#include <fmt/format.h>

#include <cctype>

#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"
#include "harness/project/ledger/ledger.h"

namespace capstone {
namespace {

constexpr const char* kKind = "capstone check-in";
constexpr std::size_t kMaxStuck = 4000;  // [B] a paragraph or two, not a worklog

Json body_of(const CheckIn& c) {
  Json members = Json::array();
  for (const Person& p : c.members)
    members.push_back({{"name", to_utf8(p.name)}, {"id", to_utf8(p.id)}, {"email", to_utf8(p.email)}});
  return {{"schema_version", kCheckInSchema},
          {"kind", kKind},
          {"members", std::move(members)},
          {"problem", c.problem},
          {"time", c.time},
          {"ledger", {{"head", c.head}, {"records", c.records}}},
          {"predicted", c.predicted},
          {"versions", c.versions},
          {"attempts", c.attempts},
          {"last", {{"version", c.last_version}, {"verdict", c.last_verdict}, {"time", c.last_time}}},
          {"failures", c.failures},
          {"failing_since", c.failing_since},
          {"stuck", to_utf8(c.stuck)}};
}

void look_at_measurements(const LedgerView& ledger, CheckIn& c) {
  for (const Record& record : ledger.records) {
    if (record.kind != "measurement") continue;
    const auto m = record.body.get<Measurement>();
    if (m.candidate != "human") continue;
    c.last_version = m.version, c.last_verdict = label_of(m.gate_one), c.last_time = record.time;
    if (m.gate_one == GateOne::kPassed) {
      c.failures = 0, c.failing_since.clear();
    } else if (m.gate_one != GateOne::kMachineFault && m.gate_one != GateOne::kNotJudgeable) {
      if (c.failures++ == 0) c.failing_since = record.time;
    }
  }
}

std::string slug(std::string_view text) {
  std::string out;
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!out.empty() && out.back() != '-')
      out += '-';
  }
  return out.substr(0, 40);
}

}  // namespace

Result<CheckIn> check_in(const Project& project, const std::string& stuck, const std::string& machine) {
  if (stuck.size() > kMaxStuck)
    return fail(fmt::format("{} bytes about where you are stuck", stuck.size()), {},
                fmt::format("{} are enough for a paragraph; the worklog has room for more", kMaxStuck));
  const Json body{{"stuck", to_utf8(stuck)}};
  CAPSTONE_TRY(Record record, append_record(project.ledger(), "checkin", body, machine));
  CAPSTONE_TRY(LedgerView ledger, read_ledger(project.ledger()));
  CAPSTONE_TRY(auto digests, line_digests(project.ledger()));
  CheckIn c;
  c.members = project.config.members;
  c.problem = project.config.problem_id;
  c.time = record.time;
  c.head = digests.empty() ? "" : digests.back();
  c.records = static_cast<int>(ledger.records.size());
  if (!ledger.predictions.empty()) c.predicted = ledger.predictions.front().bottleneck;
  c.versions = static_cast<int>(ledger.versions("human").size());
  c.attempts = static_cast<int>(ledger.attempts.size());
  c.stuck = stuck;
  look_at_measurements(ledger, c);
  return c;
}

std::string file_name_of(const CheckIn& c) {
  std::string name = "checkin";
  for (const Person& p : c.members)
    if (std::string who = slug(p.id.empty() ? p.name : p.id); !who.empty()) name += "-" + who;
  return name.substr(0, 120) + "-" + slug(c.problem) + ".json";
}

std::string checkin_text(const CheckIn& c) {
  Json json = body_of(c);
  json["digest"] = sha256_hex(json.dump());
  return json.dump(2) + "\n";
}

Result<CheckIn> parse_checkin(const std::string& text, const std::string& file) {
  Json json = parse_recorded(text);
  if (!json.is_object() || json.value("kind", Json()) != Json(kKind))
    return fail("not a check-in", file, "`capstone checkin` makes them");
  if (json.value("schema_version", Json()) != Json(kCheckInSchema))
    return fail("this check-in uses another schema", file,
                "read it with the version of capstone that wrote it, or a newer one");
  const Json digest = json.value("digest", Json());
  json.erase("digest");
  if (digest != Json(sha256_hex(json.dump())))
    return fail("the check-in was changed after it was made", file,
                "ask the student for a new one: capstone checkin");
  try {
    CheckIn c;
    for (const Json& p : json.at("members")) c.members.push_back({p.at("name"), p.at("id"), p.at("email")});
    json.at("problem").get_to(c.problem), json.at("time").get_to(c.time);
    json.at("ledger").at("head").get_to(c.head), json.at("ledger").at("records").get_to(c.records);
    json.at("predicted").get_to(c.predicted), json.at("versions").get_to(c.versions),
        json.at("attempts").get_to(c.attempts);
    const Json& last = json.at("last");
    last.at("version").get_to(c.last_version), last.at("verdict").get_to(c.last_verdict),
        last.at("time").get_to(c.last_time);
    json.at("failures").get_to(c.failures), json.at("failing_since").get_to(c.failing_since),
        json.at("stuck").get_to(c.stuck);
    return c;
  } catch (const std::exception& problem) {
    return fail(std::string("not a check-in: ") + problem.what(), file, "`capstone checkin` makes them");
  }
}

}  // namespace capstone
