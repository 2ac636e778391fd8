#include "harness/course/gradebook/agreement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "harness/base/database.h"
#include "harness/base/digest.h"
#include "harness/base/text.h"
#include "harness/course/gradebook/schema.h"
#include "harness/course/gradebook/second_marks.h"

namespace capstone {

namespace {

// The index of a mark's level; the best level comes first, as in the rubric. A mark between two levels
// belongs to the lower one.
int level_of(const Criterion& criterion, double points) {
  for (std::size_t i = 0; i < criterion.levels.size(); ++i)
    if (points >= criterion.levels[i].from) return static_cast<int>(i);
  return static_cast<int>(criterion.levels.size()) - 1;
}

const Criterion* criterion_of(const Rubric& rubric, const std::string& id) {
  for (const Criterion& c : rubric.criteria)
    if (c.id == id) return &c;
  return nullptr;
}

}  // namespace

std::optional<double> weighted_kappa(const std::vector<std::pair<int, int>>& ratings, int categories) {
  const auto k = static_cast<std::size_t>(categories);
  std::vector<double> first(k), second(k);
  double observed = 0;
  const auto weight = [](std::size_t i, std::size_t j) {
    return (static_cast<double>(i) - static_cast<double>(j)) *
           (static_cast<double>(i) - static_cast<double>(j));
  };
  for (const auto& [a, b] : ratings) {
    first[static_cast<std::size_t>(a)] += 1;
    second[static_cast<std::size_t>(b)] += 1;
    observed += weight(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
  }
  double expected = 0;
  for (std::size_t i = 0; i < k; ++i)
    for (std::size_t j = 0; j < k; ++j)
      expected +=
          weight(i, j) * first[i] * second[j] / static_cast<double>(std::max<std::size_t>(1, ratings.size()));
  if (expected <= 0) return std::nullopt;
  return 1 - observed / expected;
}

AgreementReport agreement_of(const std::vector<MarkPair>& pairs, const Rubric& rubric) {
  AgreementReport report;
  for (const Criterion& criterion : rubric.criteria) {
    CriterionAgreement a{criterion.id, 0, 0, 0, {}};
    std::vector<std::pair<int, int>> ratings;
    for (const MarkPair& pair : pairs) {
      if (pair.criterion != criterion.id) continue;
      ++a.pairs;
      a.mean_difference += pair.second - pair.first;
      a.mean_distance += std::abs(pair.second - pair.first);
      ratings.emplace_back(level_of(criterion, pair.first), level_of(criterion, pair.second));
      if (ratings.back().first != ratings.back().second) report.reconcile.push_back(pair);
    }
    if (a.pairs) {
      a.mean_difference /= a.pairs;
      a.mean_distance /= a.pairs;
      a.kappa = weighted_kappa(ratings, static_cast<int>(criterion.levels.size()));
    }
    report.criteria.push_back(std::move(a));
  }
  const auto distance = [&](const MarkPair& pair) {
    const Criterion* c = criterion_of(rubric, pair.criterion);
    return c ? std::abs(pair.second - pair.first) / c->weight : 0;
  };
  std::stable_sort(report.reconcile.begin(), report.reconcile.end(),
                   [&](const MarkPair& a, const MarkPair& b) { return distance(a) > distance(b); });
  return report;
}

GraderAgreement::GraderAgreement(std::unique_ptr<Database> database) : database_(std::move(database)) {}
GraderAgreement::GraderAgreement(GraderAgreement&&) noexcept = default;
GraderAgreement::~GraderAgreement() = default;

Result<GraderAgreement> GraderAgreement::open(const std::filesystem::path& cohort) {
  const auto file = cohort / "gradebook.sqlite";
  CAPSTONE_TRY(Database database, Database::open(file, detail::kGradebook));
  CAPSTONE_CHECK(detail::bring_up_to_date(database, file));
  return GraderAgreement(std::make_unique<Database>(std::move(database)));
}

Result<std::vector<BlindCopy>> GraderAgreement::assign(int count, const std::string& grader) {
  if (trim(grader).empty()) return fail("no grader is named", {}, "add --grader NAME");
  struct Choice {
    std::int64_t others;
    std::string order, submission, code;
  };
  std::vector<Choice> choices;
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  {
    CAPSTONE_TRY(
        Statement open,
        database_->prepare(fmt::format(
            "SELECT s.name, s.digest, (SELECT count(*) FROM blind b WHERE b.submission = s.name) "
            "FROM submission s WHERE {} AND {} IS NOT ?1 "
            "AND NOT EXISTS (SELECT 1 FROM blind b WHERE b.submission = s.name AND b.grader = ?1) "
            "AND NOT EXISTS (SELECT 1 FROM given_mark m WHERE m.submission = s.name AND m.grader = ?1)",
            detail::kCanBeMarkedTwice, detail::kFirstGrader)));
    open.bind(grader);
    for (;;) {
      CAPSTONE_TRY(bool row, open.step());
      if (!row) break;
      // Ordering by a hash is fair (no person chooses the order) and repeatable.
      const std::string hash = DigestBuilder()
                                   .add("submission", open.text(1))
                                   .add("name", open.text(0))
                                   .add("grader", grader)
                                   .hex();
      choices.push_back({open.integer(2), hash, open.text(0), "copy-" + hash.substr(0, 10)});
    }
  }
  std::sort(choices.begin(), choices.end(), [](const Choice& a, const Choice& b) {
    return std::tie(a.others, a.order) < std::tie(b.others, b.order);
  });
  if (choices.size() > static_cast<std::size_t>(std::max(0, count)))
    choices.resize(static_cast<std::size_t>(std::max(0, count)));
  std::vector<BlindCopy> copies;
  for (const Choice& choice : choices) {
    CAPSTONE_TRY(Statement add,
                 database_->prepare("INSERT INTO blind (code, submission, grader, time) VALUES (?,?,?,?)"));
    CAPSTONE_CHECK(add.bind(choice.code).bind(choice.submission).bind(to_utf8(grader)).bind(utc_now()).run());
    copies.push_back({choice.code, choice.submission});
  }
  CAPSTONE_CHECK(transaction.commit());
  return copies;
}

Result<int> GraderAgreement::withdraw(const std::string& grader) {
  CAPSTONE_TRY(
      Statement end,
      database_->prepare("DELETE FROM blind WHERE grader=? AND NOT EXISTS (SELECT 1 FROM second_mark "
                         "m WHERE m.submission = blind.submission AND m.grader = blind.grader) "
                         "RETURNING 1"));
  end.bind(grader);
  for (int withdrawn = 0;; ++withdrawn) {
    CAPSTONE_TRY(const bool row, end.step());
    if (!row) return withdrawn;
  }
}

Result<std::pair<std::string, std::string>> GraderAgreement::copy_of(const std::string& code) const {
  CAPSTONE_TRY(Statement known, database_->prepare("SELECT submission, grader FROM blind WHERE code=?"));
  CAPSTONE_TRY(bool row, known.bind(code).step());
  if (!row)
    return fail("no blind copy is called '" + code + "'", {},
                "do not rename the folder that `gradebook assign` made");
  return std::pair{known.text(0), known.text(1)};
}

Result<MergedMarks> GraderAgreement::merge(const Rubric& rubric, const std::vector<Mark>& marks) {
  CAPSTONE_TRY(Transaction transaction, Transaction::begin(*database_));
  CAPSTONE_TRY(auto merged, detail::add_second_marks(*database_, rubric, marks, detail::Given::kStays));
  CAPSTONE_CHECK(transaction.commit());
  return merged;
}

Result<std::vector<MarkPair>> GraderAgreement::pairs() const {
  // Rows come oldest first, and first marks before second marks. Each grader's last mark is kept, at the
  // position of that grader's first mark.
  using Given = std::vector<std::pair<std::string, double>>;  // (grader, points)
  std::map<std::pair<std::string, std::string>, Given> given;
  CAPSTONE_TRY(
      Statement all,
      database_->prepare(
          "SELECT x.submission, x.criterion, x.grader, x.points FROM (SELECT 0 AS second, id, submission, "
          "criterion, grader, points, digest FROM given_mark WHERE member IS NULL "
          "UNION ALL SELECT 1, id, submission, criterion, grader, points, digest FROM second_mark WHERE "
          "counts) x JOIN "
          "submission s ON s.name = x.submission AND s.digest = x.digest ORDER BY x.second, x.id"));
  for (;;) {
    CAPSTONE_TRY(bool row, all.step());
    if (!row) break;
    Given& marks = given[{all.text(0), all.text(1)}];
    auto known =
        std::find_if(marks.begin(), marks.end(), [&](const auto& mark) { return mark.first == all.text(2); });
    if (known == marks.end())
      marks.emplace_back(all.text(2), all.number(3));
    else
      known->second = all.number(3);
  }
  std::vector<MarkPair> pairs;
  for (const auto& [key, marks] : given)
    for (std::size_t i = 0; i < marks.size(); ++i)
      for (std::size_t j = i + 1; j < marks.size(); ++j)
        pairs.push_back(
            {key.first, key.second, marks[i].first, marks[j].first, marks[i].second, marks[j].second});
  return pairs;
}

}  // namespace capstone
