#pragma once
// The ledger as records: the one place where a line becomes a typed record. Private to
// harness/project/ledger.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "harness/model/explanation.h"
#include "harness/model/hint.h"
#include "harness/model/record.h"
#include "harness/project/ledger/chain.h"

namespace capstone {

/// What a record holds, by its kind; the members of other kinds are absent.
struct Content {
  std::optional<Prediction> prediction;
  std::optional<Measurement> measurement;
  std::optional<Attempt> attempt;
  std::optional<Withdrawal> withdrawal;
  std::optional<Explanation> explanation;
  std::optional<TakenHint> hint;
};

struct RecordLine {
  Line line;
  ChainFollower::Link link;
  std::int64_t seq = 0;
  std::optional<Record> record;  ///< none: it cannot be read
  Content content;
  std::vector<std::string> damage;  ///< without the line number
};

/// Every line that is not blank. The types of all values have been checked in each record that is there, and
/// its signature if it has one.
std::vector<RecordLine> record_lines(std::string_view bytes);

/// "line 7: its link is broken"
std::string at_line(const Line& line, const std::string& text);

}  // namespace capstone
