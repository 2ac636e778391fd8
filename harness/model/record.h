#pragma once
// What the ledger holds, as C++ values and as JSON. One line of .capstone/ledger.jsonl is one Record.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/base/units.h"
#include "harness/model/backend.h"

namespace capstone {

inline constexpr int kLedgerSchema = 2;

enum class GateOne {
  kPassed,
  kWrong,
  kUndefined,
  kBuildFailed,
  kCrashed,
  kTimedOut,
  kNotJudgeable,
  kMachineFault
};
enum class GateTwo { kFaster, kSlower, kTie, kUnresolved, kNotJudged };
/// "PASS", "WRONG", "UNDEFINED BEHAVIOUR", "DOES NOT BUILD", "CRASH", "TIME-OUT", "NOT JUDGEABLE", "MACHINE
/// FAULT"
std::string_view label_of(GateOne verdict);
/// "FASTER", "SLOWER", "TIE", "UNRESOLVED", "NOT JUDGED"
std::string_view label_of(GateTwo verdict);

/// One wrong element.
struct Mismatch {
  std::vector<std::int64_t> index;            ///< multi-index
  double got = 0, expected = 0, allowed = 0;  ///< allowed: the largest |got - expected| that passes
  bool unwritten = false;                     ///< still holds the pattern it was poisoned with
};

/// A value for people: `digits` significant ones, "NaN", "infinity", "-infinity".
std::string number_text(double value, int digits = 7);
/// What an element turned out to be: "got 0.25", "got NaN", "never written".
std::string got_text(double got, bool unwritten, int digits = 7);

/// Why outputs differ, in a student's words.
struct Diagnosis {
  std::string output;                      ///< tensor name
  std::int64_t wrong = 0, total = 0;       ///< elements
  std::vector<std::int64_t> first, worst;  ///< multi-indices
  double first_expected = 0, first_got = 0, worst_expected = 0, worst_got = 0;
  bool first_unwritten = false, worst_unwritten = false;  ///< they still hold the pattern of before the run
  std::vector<Mismatch> mismatches;                       ///< the first few, in order
  std::string pattern;  ///< "nothing written", "only rows >= 64 are wrong", "transposed", …
  std::string hint;
  /// Where the wrong elements are: lines of "·" (right), "░", "▒", "▓" (some wrong), "█" (all wrong).
  std::vector<std::string> map;
  std::string map_of;     ///< "y[2, :, :], a cell: 4 x 2 elements"
  bool exact = false;     ///< the pattern was tested on the elements and explains them; not recorded
  bool infinite = false;  ///< an element is infinite or no number, where a number was expected; not recorded
};

/// One case of gate one.
struct CaseResult {
  std::string id;        ///< "check-0", "hidden-1", "measure"
  Json sizes;            ///< {"rows": 64, …}
  std::string seed;      ///< hexadecimal
  std::string build;     ///< emulated: fast (or empty), asan, hooks
  std::string battery;   ///< variation of the inputs; empty: plain
  std::string schedule;  ///< emulated: forward, reverse, random, warp; else empty
  bool passed = false;
  double max_abs = 0, max_rel = 0, rms = 0;  ///< errors against the expected values
  std::string problem;                       ///< empty when passed: "wrong result", "guard band written", …
  std::string where;                         ///< file:line, kernel, block, thread when known
  std::string hint;
  std::string traceback;  ///< of Python, where an exception ended the run
  std::string printed;    ///< what the kernel printed in this run, cut
  std::optional<Diagnosis> diagnosis;
};

struct CompilerMessage {
  std::string file;
  int line = 0, column = 0;
  std::string text;
};

struct BuildResult {
  bool ok = false;
  double seconds = 0;
  std::string command;  ///< what was run, so that it can be repeated
  std::string log;      ///< the compiler's output, cut at 64 KiB
  std::optional<CompilerMessage> first_error;
  std::vector<CompilerMessage>
      warnings;  ///< of the CPU build's compiler, about the user's lines; not recorded
  bool cached = false;
  /// [s] What it took to compile, whether or not this build was cached: nvcc, or for Python the longest first
  /// call at new sizes; 0: not measured. Absent in old records
  double compile_seconds = 0;
};

/// One timed arm: a baseline, the reference a second time (A/A) or the candidate.
struct Arm {
  std::string name;                 ///< "native", "A/A", "human", …
  std::string label;                ///< what it is: "cuBLAS 13.0 sgemm, TF32 off"
  Interval median_ms;               ///< GPU-cold; on the emulated backend CPU time
  double warm_ms = 0, host_ms = 0;  ///< GPU-warm and host-inclusive medians; 0: not measured
  /// [restart][sample], launch order; what the graded number is made of. Each restart's samples are
  /// Measured::blocks equal parts
  std::vector<std::vector<double>> samples_ms;
  /// Of the candidate over this baseline; absent for the baseline, whose ratio is Measured's
  std::optional<Interval> speedup = {};
  /// The same with an L2 cache that is full of written lines when a launch begins; absent in old records
  std::optional<Interval> dirty_ms = {}, dirty_speedup = {};
  std::vector<std::vector<double>> dirty_samples_ms = {};
  /// Launches back to back on a warm chip, with the GPU's power and clock then; absent: not asked for
  std::optional<Interval> sustained_ms = {};
  double sustained_watts = 0, sustained_sm_mhz = 0;
  double launch_ms = 0;  ///< of the host, as the arm's process says; 0: not measured. Absent in old records
};

struct Measured {
  std::string clock;  ///< "GPU-cold events", "emulated (CPU time; counts for nothing)"
  std::vector<Arm> arms;
  int blocks = 0;                   ///< of each restart; its samples in as many equal parts; 0: not recorded
  std::optional<Interval> speedup;  ///< against the first baseline; absent when not judged
  double floor = 0;                 ///< f of the verdict
  std::optional<Interval> dirty_speedup;  ///< the same with a dirty cache; absent in old records
  double dirty_floor = 0;
  double flops = 0, bytes = 0;  ///< cost model at the measured size
  double percent_of_peak = 0;   ///< [%]; 0: unknown
  std::string peak;             ///< of what: "3.35 TB/s HBM3 (data sheet)"
  std::string bound_by;         ///< "memory", "compute" or "latency"
  Json sizes;
};

/// A file of the project that a candidate includes.
struct IncludedFile {
  std::string path;  ///< inside the project
  std::string sha256;
  bool operator==(const IncludedFile&) const = default;
};

/// One judgement of one source. What `measure` and `llm add` append.
struct Measurement {
  std::string candidate;                   ///< "human", "llm" or "together"
  std::string version;                     ///< "v1", "v2" … or "attempt-1" …
  std::string reason;                      ///< -m
  std::optional<double> expected_speedup;  ///< --expect
  std::string source,
      source_sha256;  ///< path inside the project; content under .capstone/sources/<sha256>.cu
  /// What the source includes from the project, sorted by path; absent in older records
  std::optional<std::vector<IncludedFile>> included;
  std::string problem_id, problem_digest;
  Backend backend = Backend::kAuto;        ///< kAuto: not recorded
  Execution execution = Execution::kAuto;  ///< kAuto: nothing has run
  std::string execution_reason;            ///< why not replayed; empty otherwise
  std::string isolation;                   ///< "bubblewrap", "none: …"
  Json environment = Json::object();       ///< device, uuid, driver, clocks, nvcc, cpu, tool version
  BuildResult build;
  GateOne gate_one = GateOne::kMachineFault;
  std::vector<CaseResult> cases;
  GateTwo gate_two = GateTwo::kNotJudged;
  std::string gate_two_reason;  ///< why not judged, or why unresolved
  /// What a mentor should know, whatever the verdict: "needs an explanation: …", "library: …"
  std::vector<std::string> labels;
  std::optional<Measured> measured;
  double seconds = 0;  ///< wall time of the judgement
  const CaseResult* first_failure() const;
  /// Whether this machine came to a verdict: no machine fault, and not "not judgeable".
  bool judged() const;
};

/// "yes", "no", or "not judged here" where the machine could not tell.
std::string_view compiled_text(const Measurement& measurement);
std::string_view correct_text(const Measurement& measurement);

struct Prediction {
  std::string bottleneck;  ///< "memory", "compute", "latency"
  std::optional<double> speedup;
  std::string because;
  bool before_first_measurement = true;
};

/// One reply of a language model, filed permanently.
struct Attempt {
  int number = 0;
  std::string model, settings;
  std::string prompt_sha256, reply_sha256;  ///< contents under llm/attempt-N/
  /// Unified diff against the rendered template; empty: verbatim
  std::string prompt_difference;
  /// How the code was found: "one fenced block", "two blocks, the one with launch()", …
  std::string extracted;
  std::string no_code_because;     ///< set when no code could be taken out
  std::string kernel_sha256 = {};  ///< of the code that was taken out; empty: none, or an older record
  /// The version whose code and verdict the prompt gives as feedback; empty: none. Absent in older records
  std::optional<std::string> feedback_on = {};
};

/// An attempt that was filed by mistake. Nothing was judged from it.
struct Withdrawal {
  int attempt = 0;
  std::string because;
};

/// The signature of the machine that judged.
struct Signature {
  std::string key;    ///< its public key (ed25519), 64 hexadecimal digits
  std::string value;  ///< over signed_text(), 128 hexadecimal digits
};

/// One line of the ledger.
struct Record {
  std::int64_t seq = 0;
  std::string time;      ///< UTC
  std::string kind;      ///< "init", "prediction", "measurement", "attempt", "withdrawal", "explanation",
                         ///< "profile", "hint", "checkin", "import"
  std::string tool;      ///< version
  std::string machine;   ///< random id of the chain, not the host name
  std::string previous;  ///< SHA-256 of the line before in this chain; empty for the first
  Json body;             ///< one of the structures above
  /// Absent: no machine vouches for the record. In a LedgerView it has been verified.
  std::optional<Signature> signature = {};
};

void to_json(Json&, const Measurement&);
void from_json(const Json&, Measurement&);
void to_json(Json&, const Prediction&);
void from_json(const Json&, Prediction&);
void to_json(Json&, const Attempt&);
void from_json(const Json&, Attempt&);
void to_json(Json&, const Withdrawal&);
void from_json(const Json&, Withdrawal&);
void to_json(Json&, const Record&);
void from_json(const Json&, Record&);

/// What a signature covers: time, kind, tool, machine and body of a record as the ledger's line holds them,
/// but not its place in the chain: a record may be imported into another ledger.
std::string signed_text(const Json& record);

}  // namespace capstone
