#include "harness/model/record.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <stdexcept>

#include "harness/base/json_number.h"
#include "harness/base/text.h"
#include "harness/model/fields.h"

namespace capstone {
namespace {

// Enumerators as they are written in the ledger. A word never changes its meaning; labels for people may.
constexpr std::array<std::pair<GateOne, std::string_view>, 8> kGateOneWords{{
    {GateOne::kPassed, "passed"},
    {GateOne::kWrong, "wrong"},
    {GateOne::kUndefined, "undefined_behaviour"},
    {GateOne::kBuildFailed, "build_failed"},
    {GateOne::kCrashed, "crashed"},
    {GateOne::kTimedOut, "timed_out"},
    {GateOne::kNotJudgeable, "not_judgeable"},
    {GateOne::kMachineFault, "machine_fault"},
}};
constexpr std::array<std::pair<GateTwo, std::string_view>, 5> kGateTwoWords{{
    {GateTwo::kFaster, "faster"},
    {GateTwo::kSlower, "slower"},
    {GateTwo::kTie, "tie"},
    {GateTwo::kUnresolved, "unresolved"},
    {GateTwo::kNotJudged, "not_judged"},
}};

template <class Enum, std::size_t N>
std::string word_of(const std::array<std::pair<Enum, std::string_view>, N>& words, Enum value) {
  for (const auto& [each, word] : words)
    if (each == value) return std::string(word);
  throw std::logic_error("an enumerator has no word in the ledger");
}

// A word of the table.
template <class Enum, std::size_t N>
void read_word(const Json& json, const char* key, Enum& into,
               const std::array<std::pair<Enum, std::string_view>, N>& words) {
  const Json* value = field(json, key);
  if (!value) return;
  std::vector<std::string> known;
  for (const auto& [each, word] : words) {
    if (value->is_string() && value->get_ref<const std::string&>() == word) {
      into = each;
      return;
    }
    known.emplace_back(word);
  }
  throw WrongType(key, "one of " + join(known, ", "), *value);
}

// A word that may be empty.
template <class Choice>
void read_choice(const Json& json, const char* key, Choice& into,
                 std::optional<Choice> (*named)(std::string_view)) {
  std::string word;
  read(json, key, word);
  if (word.empty()) return;
  const std::optional<Choice> choice = named(word);
  if (!choice) throw WrongType(key, "a known word", Json(word));
  into = *choice;
}

void write(Json& json, const char* key, const std::optional<double>& value) {
  if (value) json[key] = number(*value);
}

Json to(const Interval& interval) {
  return {{"point", number(interval.point)}, {"low", number(interval.low)}, {"high", number(interval.high)}};
}
Interval interval_from(const Json& json) {
  Interval interval;
  read(json, "point", interval.point);
  read(json, "low", interval.low);
  read(json, "high", interval.high);
  return interval;
}

Json to(const Mismatch& m) {
  Json json{{"index", m.index},
            {"got", number(m.got)},
            {"expected", number(m.expected)},
            {"allowed", number(m.allowed)}};
  if (m.unwritten) json["unwritten"] = true;
  return json;
}
Mismatch mismatch_from(const Json& json) {
  Mismatch m;
  read(json, "index", m.index);
  read(json, "got", m.got);
  read(json, "expected", m.expected);
  read(json, "allowed", m.allowed);
  read(json, "unwritten", m.unwritten);
  return m;
}

Json to(const Diagnosis& d) {
  Json mismatches = Json::array();
  for (const Mismatch& m : d.mismatches) mismatches.push_back(to(m));
  Json json{{"output", d.output},
            {"wrong", d.wrong},
            {"total", d.total},
            {"first", d.first},
            {"worst", d.worst},
            {"first_expected", number(d.first_expected)},
            {"first_got", number(d.first_got)},
            {"worst_expected", number(d.worst_expected)},
            {"worst_got", number(d.worst_got)},
            {"first_unwritten", d.first_unwritten},
            {"worst_unwritten", d.worst_unwritten},
            {"mismatches", std::move(mismatches)},
            {"pattern", d.pattern},
            {"hint", d.hint}};
  if (!d.map.empty()) {
    json["map_of"] = d.map_of;
    json["map"] = d.map;
  }
  return json;
}
Diagnosis diagnosis_from(const Json& json) {
  Diagnosis d;
  read(json, "output", d.output);
  read(json, "wrong", d.wrong);
  read(json, "total", d.total);
  read(json, "first", d.first);
  read(json, "worst", d.worst);
  read(json, "first_expected", d.first_expected);
  read(json, "first_got", d.first_got);
  read(json, "worst_expected", d.worst_expected);
  read(json, "worst_got", d.worst_got);
  read(json, "first_unwritten", d.first_unwritten);
  read(json, "worst_unwritten", d.worst_unwritten);
  read_each(json, "mismatches", d.mismatches, mismatch_from);
  read(json, "pattern", d.pattern);
  read(json, "hint", d.hint);
  read(json, "map_of", d.map_of);
  read(json, "map", d.map);
  return d;
}

Json to(const CaseResult& c) {
  Json json = {{"id", c.id},
               {"sizes", c.sizes},
               {"seed", c.seed},
               {"build", c.build},
               {"battery", c.battery},
               {"schedule", c.schedule},
               {"passed", c.passed},
               {"max_abs", number(c.max_abs)},
               {"max_rel", number(c.max_rel)},
               {"rms", number(c.rms)},
               {"problem", c.problem},
               {"where", c.where},
               {"hint", c.hint}};
  if (!c.traceback.empty()) json["traceback"] = c.traceback;
  if (!c.printed.empty()) json["printed"] = c.printed;
  if (c.diagnosis) json["diagnosis"] = to(*c.diagnosis);
  return json;
}
CaseResult case_from(const Json& json) {
  CaseResult c;
  read(json, "id", c.id);
  read_counts(json, "sizes", c.sizes);
  read(json, "seed", c.seed);
  read(json, "build", c.build);
  read(json, "battery", c.battery);
  read(json, "schedule", c.schedule);
  read(json, "passed", c.passed);
  read(json, "max_abs", c.max_abs);
  read(json, "max_rel", c.max_rel);
  read(json, "rms", c.rms);
  read(json, "problem", c.problem);
  read(json, "where", c.where);
  read(json, "hint", c.hint);
  read(json, "traceback", c.traceback);
  read(json, "printed", c.printed);
  if (Diagnosis diagnosis; read_with(json, "diagnosis", diagnosis, diagnosis_from))
    c.diagnosis = std::move(diagnosis);
  return c;
}

Json to(const CompilerMessage& m) {
  return {{"file", m.file}, {"line", m.line}, {"column", m.column}, {"text", m.text}};
}
CompilerMessage message_from(const Json& json) {
  CompilerMessage m;
  read(json, "file", m.file);
  read(json, "line", m.line);
  read(json, "column", m.column);
  read(json, "text", m.text);
  return m;
}

Json to(const BuildResult& b) {
  Json json = {{"ok", b.ok},
               {"seconds", number(b.seconds)},
               {"command", b.command},
               {"log", b.log},
               {"cached", b.cached}};
  if (b.compile_seconds > 0) json["compile_seconds"] = number(b.compile_seconds);
  if (b.first_error) json["first_error"] = to(*b.first_error);
  return json;
}
BuildResult build_from(const Json& json) {
  BuildResult b;
  read(json, "ok", b.ok);
  read(json, "seconds", b.seconds);
  read(json, "compile_seconds", b.compile_seconds);
  read(json, "command", b.command);
  read(json, "log", b.log);
  read(json, "cached", b.cached);
  if (CompilerMessage error; read_with(json, "first_error", error, message_from))
    b.first_error = std::move(error);
  return b;
}

Json to(const std::vector<std::vector<double>>& samples) {
  Json restarts = Json::array();
  for (const auto& restart : samples) {
    Json times = Json::array();
    for (double time : restart) times.push_back(number(time));
    restarts.push_back(std::move(times));
  }
  return restarts;
}
Json to(const Arm& a) {
  Json json{{"name", a.name},
            {"label", a.label},
            {"median_ms", to(a.median_ms)},
            {"warm_ms", number(a.warm_ms)},
            {"host_ms", number(a.host_ms)},
            {"samples_ms", to(a.samples_ms)}};
  if (a.launch_ms > 0) json["launch_ms"] = number(a.launch_ms);
  if (a.speedup) json["speedup"] = to(*a.speedup);
  if (a.dirty_ms) json["dirty_ms"] = to(*a.dirty_ms);
  if (!a.dirty_samples_ms.empty()) json["dirty_samples_ms"] = to(a.dirty_samples_ms);
  if (a.dirty_speedup) json["dirty_speedup"] = to(*a.dirty_speedup);
  if (a.sustained_ms)
    json.update({{"sustained_ms", to(*a.sustained_ms)},
                 {"sustained_watts", number(a.sustained_watts)},
                 {"sustained_sm_mhz", number(a.sustained_sm_mhz)}});
  return json;
}
void read_interval(const Json& json, const char* key, std::optional<Interval>& into) {
  if (Interval interval; read_with(json, key, interval, interval_from)) into = interval;
}

Arm arm_from(const Json& json) {
  Arm a;
  read(json, "name", a.name);
  read(json, "label", a.label);
  read_with(json, "median_ms", a.median_ms, interval_from);
  read(json, "warm_ms", a.warm_ms);
  read(json, "host_ms", a.host_ms);
  read(json, "launch_ms", a.launch_ms);
  read(json, "samples_ms", a.samples_ms);
  read_interval(json, "speedup", a.speedup);
  read_interval(json, "dirty_ms", a.dirty_ms);
  read(json, "dirty_samples_ms", a.dirty_samples_ms);
  read_interval(json, "dirty_speedup", a.dirty_speedup);
  read_interval(json, "sustained_ms", a.sustained_ms);
  read(json, "sustained_watts", a.sustained_watts);
  read(json, "sustained_sm_mhz", a.sustained_sm_mhz);
  return a;
}

Json to(const Measured& m) {
  Json json = {{"clock", m.clock}, {"arms", Json::array()}};
  for (const Arm& arm : m.arms) json["arms"].push_back(to(arm));
  if (m.blocks) json["blocks"] = m.blocks;
  if (m.speedup) json["speedup"] = to(*m.speedup);
  json["floor"] = number(m.floor);
  if (m.dirty_speedup) {
    json["dirty_speedup"] = to(*m.dirty_speedup);
    json["dirty_floor"] = number(m.dirty_floor);
  }
  json["flops"] = number(m.flops);
  json["bytes"] = number(m.bytes);
  json["percent_of_peak"] = number(m.percent_of_peak);
  json["peak"] = m.peak;
  json["bound_by"] = m.bound_by;
  json["sizes"] = m.sizes;
  return json;
}
Measured measured_from(const Json& json) {
  Measured m;
  read(json, "clock", m.clock);
  read_each(json, "arms", m.arms, arm_from);
  read_interval(json, "speedup", m.speedup);
  read(json, "floor", m.floor);
  read_interval(json, "dirty_speedup", m.dirty_speedup);
  read(json, "dirty_floor", m.dirty_floor);
  read(json, "blocks", m.blocks);
  read(json, "flops", m.flops);
  read(json, "bytes", m.bytes);
  read(json, "percent_of_peak", m.percent_of_peak);
  read(json, "peak", m.peak);
  read(json, "bound_by", m.bound_by);
  read_counts(json, "sizes", m.sizes);
  return m;
}

Signature signature_from(const Json& json) {
  Signature signature;
  read(json, "key", signature.key);
  read(json, "value", signature.value);
  return signature;
}

}  // namespace

std::string number_text(double value, int digits) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinity" : "-infinity";
  return fmt::format("{:.{}g}", value, digits);
}

std::string got_text(double got, bool unwritten, int digits) {
  return unwritten ? "never written" : "got " + number_text(got, digits);
}

std::string_view label_of(GateOne verdict) {
  switch (verdict) {
    case GateOne::kPassed:
      return "PASS";
    case GateOne::kWrong:
      return "WRONG";
    case GateOne::kUndefined:
      return "UNDEFINED BEHAVIOUR";
    case GateOne::kBuildFailed:
      return "DOES NOT BUILD";
    case GateOne::kCrashed:
      return "CRASH";
    case GateOne::kTimedOut:
      return "TIME-OUT";
    case GateOne::kNotJudgeable:
      return "NOT JUDGEABLE";
    case GateOne::kMachineFault:
      return "MACHINE FAULT";
  }
  return "?";
}

std::string_view label_of(GateTwo verdict) {
  switch (verdict) {
    case GateTwo::kFaster:
      return "FASTER";
    case GateTwo::kSlower:
      return "SLOWER";
    case GateTwo::kTie:
      return "TIE";
    case GateTwo::kUnresolved:
      return "UNRESOLVED";
    case GateTwo::kNotJudged:
      return "NOT JUDGED";
  }
  return "?";
}

bool Measurement::judged() const {
  return gate_one != GateOne::kNotJudgeable && gate_one != GateOne::kMachineFault;
}

std::string_view compiled_text(const Measurement& m) {
  return !m.judged() ? "not judged here" : m.gate_one == GateOne::kBuildFailed ? "no" : "yes";
}

std::string_view correct_text(const Measurement& m) {
  return !m.judged() ? "not judged here" : m.gate_one == GateOne::kPassed ? "yes" : "no";
}

const CaseResult* Measurement::first_failure() const {
  for (const CaseResult& each : cases)
    if (!each.passed) return &each;
  return nullptr;
}

void to_json(Json& json, const Measurement& m) {
  json = Json{{"candidate", m.candidate}, {"version", m.version}, {"reason", m.reason}};
  write(json, "expected_speedup", m.expected_speedup);
  json["source"] = m.source;
  json["source_sha256"] = m.source_sha256;
  if (m.included) {
    json["included"] = Json::array();
    for (const IncludedFile& file : *m.included)
      json["included"].push_back({{"path", file.path}, {"sha256", file.sha256}});
  }
  json["problem_id"] = m.problem_id;
  json["problem_digest"] = m.problem_digest;
  json["backend"] = recorded_name(m.backend);
  json["execution"] = recorded_name(m.execution);
  json["execution_reason"] = m.execution_reason;
  json["isolation"] = m.isolation;
  json["environment"] = m.environment;
  json["build"] = to(m.build);
  json["gate_one"] = word_of(kGateOneWords, m.gate_one);
  json["cases"] = Json::array();
  for (const CaseResult& each : m.cases) json["cases"].push_back(to(each));
  json["gate_two"] = word_of(kGateTwoWords, m.gate_two);
  json["gate_two_reason"] = m.gate_two_reason;
  json["labels"] = m.labels;
  if (m.measured) json["measured"] = to(*m.measured);
  json["seconds"] = number(m.seconds);
}

void from_json(const Json& json, Measurement& m) {
  m = Measurement{};
  read(json, "candidate", m.candidate);
  read(json, "version", m.version);
  read(json, "reason", m.reason);
  read(json, "expected_speedup", m.expected_speedup);
  read(json, "source", m.source);
  read(json, "source_sha256", m.source_sha256);
  if (const Json* files = field(json, "included")) {
    m.included.emplace();
    for (const Json& each : *files) {
      IncludedFile& file = m.included->emplace_back();
      read(each, "path", file.path);
      read(each, "sha256", file.sha256);
    }
  }
  read(json, "problem_id", m.problem_id);
  read(json, "problem_digest", m.problem_digest);
  read_choice(json, "backend", m.backend, backend_named);
  read_choice(json, "execution", m.execution, execution_named);
  read(json, "execution_reason", m.execution_reason);
  read(json, "isolation", m.isolation);
  read_object(json, "environment", m.environment,
              {{"device", "uuid", "driver", "compute_capability", "nvcc", "arch", "tool", "system", "cpu",
                "peaks", "torch", "native_because"},
               {"sm_count", "cpu_threads", "cuda_runtime"},
               {"l2_bytes", "copy_bytes_per_second"}});
  read_with(json, "build", m.build, build_from);
  read_word(json, "gate_one", m.gate_one, kGateOneWords);
  read_each(json, "cases", m.cases, case_from);
  read_word(json, "gate_two", m.gate_two, kGateTwoWords);
  read(json, "gate_two_reason", m.gate_two_reason);
  read(json, "labels", m.labels);
  if (Measured measured; read_with(json, "measured", measured, measured_from)) {
    m.measured = std::move(measured);
    if (m.labels.empty()) read(json["measured"], "labels", m.labels);  // where the first version kept them
  }
  read(json, "seconds", m.seconds);
}

void to_json(Json& json, const Prediction& p) {
  json = Json{{"bottleneck", p.bottleneck}};
  write(json, "speedup", p.speedup);
  json["because"] = p.because;
  json["before_first_measurement"] = p.before_first_measurement;
}

void from_json(const Json& json, Prediction& p) {
  p = Prediction{};
  read(json, "bottleneck", p.bottleneck);
  read(json, "speedup", p.speedup);
  read(json, "because", p.because);
  read(json, "before_first_measurement", p.before_first_measurement);
}

void to_json(Json& json, const Attempt& a) {
  json = Json{{"number", a.number},
              {"model", a.model},
              {"settings", a.settings},
              {"prompt_sha256", a.prompt_sha256},
              {"reply_sha256", a.reply_sha256},
              {"prompt_difference", a.prompt_difference},
              {"extracted", a.extracted},
              {"no_code_because", a.no_code_because}};
  if (!a.kernel_sha256.empty()) json["kernel_sha256"] = a.kernel_sha256;
  if (a.feedback_on) json["feedback_on"] = *a.feedback_on;
}

void from_json(const Json& json, Attempt& a) {
  a = Attempt{};
  read(json, "number", a.number);
  read(json, "model", a.model);
  read(json, "settings", a.settings);
  read(json, "prompt_sha256", a.prompt_sha256);
  read(json, "reply_sha256", a.reply_sha256);
  read(json, "kernel_sha256", a.kernel_sha256);
  read(json, "prompt_difference", a.prompt_difference);
  read(json, "extracted", a.extracted);
  read(json, "no_code_because", a.no_code_because);
  if (std::string version; field(json, "feedback_on")) {
    read(json, "feedback_on", version);
    a.feedback_on = version;
  }
}

void to_json(Json& json, const Withdrawal& w) { json = Json{{"attempt", w.attempt}, {"because", w.because}}; }

void from_json(const Json& json, Withdrawal& w) {
  w = Withdrawal{};
  read(json, "attempt", w.attempt);
  read(json, "because", w.because);
}

void to_json(Json& json, const Record& r) {
  // The body comes last: a reader that only needs the chain stops before it.
  json = Json{{"schema_version", kLedgerSchema},
              {"seq", r.seq},
              {"time", r.time},
              {"kind", r.kind},
              {"tool", r.tool},
              {"machine", r.machine},
              {"previous", r.previous}};
  if (r.signature) json["signature"] = {{"key", r.signature->key}, {"value", r.signature->value}};
  json["body"] = r.body;
}

void from_json(const Json& json, Record& r) {
  r = Record{};
  for (const char* key : {"seq", "kind", "machine"})
    if (!field(json, key)) throw std::invalid_argument(fmt::format("{} is missing", key));
  read(json, "seq", r.seq);
  read(json, "time", r.time);
  read(json, "kind", r.kind);
  read(json, "tool", r.tool);
  read(json, "machine", r.machine);
  read(json, "previous", r.previous);
  if (Signature signature; read_with(json, "signature", signature, signature_from)) r.signature = signature;
  if (const Json* body = field(json, "body")) r.body = *body;
}

std::string signed_text(const Json& record) {
  Json text = Json::object();
  for (const char* key : {"time", "kind", "tool", "machine", "body"})
    text[key] = record.contains(key) ? record[key] : Json();
  return "capstone record 1\n" + text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace capstone
