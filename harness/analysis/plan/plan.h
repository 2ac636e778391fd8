#pragma once
// The course as a road of sessions (reference_kernels/course.yaml), and a mentor's plan of each of them
// (reference_kernels/plans/ID.yaml).
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"

namespace capstone {

struct CourseSession {
  std::string id;     ///< "L4"
  std::string title;  ///< "the GEMM ladder I"
  std::string half;   ///< the sentence over its half of the course
  int week = 0;       ///< from 1
};

struct Course {
  std::string question;                 ///< asked in every session
  std::string loop;                     ///< how it is answered
  std::vector<CourseSession> sessions;  ///< in the order in which they are taught

  int weeks() const { return sessions.empty() ? 0 : sessions.back().week; }
};

/// @error an unknown or a missing key, a week that does not follow the one before, a session twice.
Result<Course> load_course(const std::filesystem::path& reference_kernels);

/// The session that a user means, in any case: "l4". @error no such session: the hint lists them.
Result<CourseSession> find_session(const Course& course, const std::string& id);

/// A stretch of a session.
struct PlanStep {
  enum class Kind { kTeach, kBuild, kBreak } kind = Kind::kTeach;
  int minutes = 0;
  std::string what;
};
std::string_view name_of(PlanStep::Kind kind);

/// A command and what to point at in its output.
struct PlanCommand {
  std::string run;    ///< "capstone demo bank-conflict"
  std::string shows;  ///< a text that it prints, with or without a GPU
};

/// A number for the class: of recorded rungs, or one that the course quotes.
struct PlanNumber {
  std::string ladder;              ///< a problem; empty: `course` is set
  std::vector<std::string> rungs;  ///< recorded together, in the order in which they are told
  std::string course;              ///< a heading of docs/reference/handbook_numbers.md
  std::string means;               ///< what it tells the class; may be empty
};

struct SessionPlan {
  std::string id;  ///< the name of its file
  std::vector<PlanStep> steps;
  std::string artifact;  ///< the one thing that students leave with
  std::string begin;     ///< the command with which they begin it
  PlanCommand demo;
  int demo_seconds = 0;  ///< it ends within them, also with an empty cache, on a machine of two cores
  std::string line;      ///< to say at the board
  std::string thinks;    ///< the pitfall: what students think
  std::string instead;   ///< what is the case
  PlanCommand proof;     ///< shows it
  std::vector<PlanNumber> numbers;

  /// [min] of one kind, or of all.
  int minutes_of(PlanStep::Kind kind) const;
  int minutes() const;
};

/// One plan, read strictly. @error an unknown or a missing key, a command that does not begin with
/// `capstone`; a step without minutes.
Result<SessionPlan> load_plan(const std::filesystem::path& file);

/// The plan of a session. @error as load_plan(); there is no file for it.
Result<SessionPlan> plan_of(const CourseSession& session, const std::filesystem::path& reference_kernels);

}  // namespace capstone
