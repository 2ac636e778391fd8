#pragma once
// A session's plan with what it refers to: its ladders and labs as they are in this installation, recorded
// times, the numbers that the course quotes.
#include <optional>

#include "harness/analysis/ladder/ladder.h"
#include "harness/analysis/plan/plan.h"
#include "harness/project/lab/lab.h"

namespace capstone {

/// A number that the course quotes, a section of docs/reference/handbook_numbers.md.
struct CourseNumber {
  std::string name;  ///< "93.7 %", the section's heading
  std::string said, source, measured, say;
};
/// @param share  of the installation
/// @error the page cannot be read; a section lacks one of its four lines.
Result<std::vector<CourseNumber>> course_numbers(const std::filesystem::path& share);

/// The fastest recorded rung that a session has of a ladder.
struct LadderInSession {
  std::string problem;
  int rungs = 0;  ///< of this session
  std::string device, sizes, date;
  std::optional<LadderStep> best;  ///< empty: not measured
};

/// A number in words.
struct NumberInWords {
  std::string name;                ///< of the ladder or of the quoted number
  std::string says;                ///< "01_naive 275 ms → 02_coalesced 49.4 ms, 5.57x faster"
  std::vector<std::string> facts;  ///< where it comes from, a line each
  std::string means;               ///< may be empty
};

struct SessionSheet {
  CourseSession session;
  SessionPlan plan;
  std::vector<LadderInSession> ladders;
  std::vector<Lab> labs;
  std::vector<NumberInWords> numbers;
  std::vector<std::string> more_demos;  ///< names of other demos of the session
};

/// What sheets are made from, read once.
struct SheetSources {
  std::vector<Ladder> recorded;
  std::vector<CourseNumber> quoted;
};
/// @error a results file or the page of numbers cannot be read.
Result<SheetSources> sheet_sources(const Resources& resources);

/// @error the session has no plan, or not a valid one; a lab of it is not valid; it quotes a number that the
/// page of numbers lacks.
Result<SessionSheet> session_sheet(const CourseSession& session, const SheetSources& sources,
                                   const Resources& resources);

}  // namespace capstone
