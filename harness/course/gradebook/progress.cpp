#include "harness/course/gradebook/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "harness/base/ascii.h"
#include "harness/base/csv.h"
#include "harness/base/text.h"

namespace capstone {
namespace {

constexpr double kLongAgo = 7;  // [d] without a check-in

double days_since(const std::string& time, Instant now) {
  auto then = parse_instant(time);
  return then ? static_cast<double>(now - *then) / kSecondsOfADay : 0;
}

std::string day_of(const std::string& time) { return time.substr(0, 10); }

// The reasons why a project needs help. `history` holds its check-ins, oldest first.
std::vector<std::string> needs_of(const std::vector<CheckIn>& history, const HandedIn* handed_in,
                                  Instant now) {
  const CheckIn& last = history.back();
  std::vector<std::string> needs;
  if (!last.stuck.empty()) needs.push_back("stuck: " + last.stuck);
  if (last.versions == 0) needs.push_back("nothing measured yet");
  if (last.failures > 0)
    needs.push_back(fmt::format("{} since {} ({} measurement{})", last.last_verdict,
                                day_of(last.failing_since), last.failures, last.failures == 1 ? "" : "s"));
  if (history.size() > 1) {
    const CheckIn& before = history[history.size() - 2];
    if (last.versions > 0 && last.last_time == before.last_time)
      needs.push_back("no measurement since the check-in of " + day_of(before.time));
    if (last.records < before.records)
      needs.push_back(fmt::format("the ledger had {} records on {}, now it has {}: is it a different copy?",
                                  before.records, day_of(before.time), last.records));
  }
  if (!handed_in && days_since(last.time, now) > kLongAgo)
    needs.push_back(fmt::format("no check-in for {:.0f} days", days_since(last.time, now)));
  if (handed_in && !handed_in->lines.contains(last.head))
    needs.push_back("the submitted ledger is not the one that was checked in");
  return needs;
}

Claimant claimant_of(const std::vector<Person>& members, const std::string& name) {
  return {name, members, {}};
}

// Two people may have one name: what tells them apart is their id or address.
bool are_others(const Person& a, const Person& b) {
  const auto differ = [](const std::string& x, const std::string& y) {
    return !x.empty() && !y.empty() && ascii_lower(x) != ascii_lower(y);
  };
  return differ(a.id, b.id) || (a.id.empty() && b.id.empty() && differ(a.email, b.email));
}

const HandedIn* submission_of(const std::vector<Person>& members, const std::vector<HandedIn>& all) {
  std::vector<RosterRow> rows;
  for (const Person& p : members) rows.push_back({p.name, p.id, p.email, 0, {}, {}});
  for (const HandedIn& each : all) {
    auto match = match_roster(rows, {claimant_of(each.members, each.submission)});
    const bool others = std::all_of(members.begin(), members.end(), [&](const Person& a) {
      return std::all_of(each.members.begin(), each.members.end(),
                         [&](const Person& b) { return are_others(a, b); });
    });
    if (match.strangers.empty() && !others) return &each;
  }
  return nullptr;
}

// The identity of a project: check-ins with the same members and the same problem belong together.
std::string project_of(const CheckIn& c) {
  std::string key = c.problem;
  if (c.members.empty()) key += "\n\n" + c.head;  // without members, the ledger's head keeps projects apart
  for (const Person& p : c.members) key += "\n" + (p.id.empty() ? p.email.empty() ? p.name : p.email : p.id);
  return key;
}

}  // namespace

std::vector<ProgressRow> progress_of(std::vector<CheckIn> checkins, const std::vector<RosterRow>& roster,
                                     const std::vector<HandedIn>& handed_in, Instant now) {
  std::stable_sort(checkins.begin(), checkins.end(),
                   [](const CheckIn& a, const CheckIn& b) { return a.time < b.time; });
  std::map<std::string, std::vector<CheckIn>> projects;
  for (CheckIn& c : checkins) projects[project_of(c)].push_back(std::move(c));
  std::vector<ProgressRow> rows;
  std::vector<Claimant> claimants;
  for (const auto& [key, history] : projects) {
    const CheckIn& last = history.back();
    const HandedIn* submission = submission_of(last.members, handed_in);
    const auto needs = needs_of(history, submission, now);
    for (const Person& p : last.members)
      rows.push_back({p.name, p.id, last.problem, last, static_cast<int>(history.size()), needs,
                      submission ? submission->submission : ""});
    if (last.members.empty()) {
      auto unnamed = needs;
      unnamed.insert(unnamed.begin(),
                     "no member is named: fill in `members` in capstone.yaml, then check in again");
      rows.push_back({fmt::format("(no member named, {} {}, ledger {})", last.problem, day_of(last.time),
                                  last.head.substr(0, 8)),
                      "", last.problem, last, static_cast<int>(history.size()), unnamed, ""});
      continue;  // without members it cannot be matched with the roster
    }
    claimants.push_back(claimant_of(last.members, key));
  }
  const RosterMatch match = match_roster(roster, claimants);
  for (std::size_t i = 0; i < roster.size(); ++i) {
    if (!match.submissions[i].empty()) continue;
    const HandedIn* submission = submission_of({{roster[i].name, roster[i].id, roster[i].email}}, handed_in);
    rows.push_back({roster[i].name,
                    roster[i].id,
                    "",
                    {},
                    0,
                    submission ? std::vector<std::string>{} : std::vector<std::string>{"never checked in"},
                    submission ? submission->submission : ""});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const ProgressRow& a, const ProgressRow& b) {
    return a.needs.size() > b.needs.size();
  });
  return rows;
}

std::string progress_csv(const std::vector<ProgressRow>& rows) {
  std::string text = csv_row({"person", "id", "problem", "last_checkin", "checkins", "records", "versions",
                              "attempts", "predicted", "last_verdict", "last_measured", "failing_since",
                              "stuck", "ledger_head", "handed_in", "needs"});
  for (const ProgressRow& row : rows) {
    const CheckIn none, &c = row.last ? *row.last : none;
    text += csv_row({row.person, row.id, row.problem, c.time, std::to_string(row.checkins),
                     std::to_string(c.records), std::to_string(c.versions), std::to_string(c.attempts),
                     c.predicted, c.last_verdict, c.last_time, c.failing_since, c.stuck, c.head,
                     row.handed_in, join(row.needs, "; ")});
  }
  return text;
}

Json progress_json(const std::vector<ProgressRow>& rows) {
  Json out{{"schema_version", 1}, {"rows", Json::array()}};
  for (const ProgressRow& row : rows) {
    Json entry{{"person", to_utf8(row.person)}, {"id", to_utf8(row.id)}, {"problem", row.problem},
               {"checkins", row.checkins},      {"needs", row.needs},    {"handed_in", row.handed_in}};
    entry["last"] = row.last ? Json::parse(checkin_text(*row.last)) : Json(nullptr);
    out["rows"].push_back(std::move(entry));
  }
  return out;
}

}  // namespace capstone
