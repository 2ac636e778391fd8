#include <algorithm>
#include <cctype>

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/model/upgrade.h"

namespace capstone {
namespace {

Json interval_json(const Interval& i) { return {i.point, i.low, i.high}; }
Interval interval_from(const Json& json) {
  return {json.at(0).get<double>(), json.at(1).get<double>(), json.at(2).get<double>()};
}

void put(Json& json, const char* key, const std::optional<Interval>& interval) {
  if (interval) json[key] = interval_json(*interval);
}
std::optional<Interval> optional_interval(const Json& json, const char* key) {
  return json.contains(key) ? std::optional(interval_from(json[key])) : std::nullopt;
}

}  // namespace

void to_json(Json& json, const Ladder& l) {
  json = Json{{"problem", l.problem}, {"title", l.title},
              {"sizes", l.sizes},     {"backend", l.backend},
              {"time", l.time},       {"tool", l.tool},
              {"device", l.device},   {"driver", l.driver},
              {"nvcc", l.nvcc},       {"copy_bytes_per_second", l.copy_bytes_per_second},
              {"flops", l.flops},     {"bytes", l.bytes},
              {"library", l.library}, {"library_ms", l.library_ms},
              {"seconds", l.seconds}};
  if (l.library_dirty_ms > 0) json["library_dirty_ms"] = l.library_dirty_ms;
  if (l.library_sustained_ms > 0) json["library_sustained_ms"] = l.library_sustained_ms;
  if (!l.telemetry.is_null()) json["telemetry"] = l.telemetry;
  for (const LadderStep& s : l.steps) {
    Json step{{"rung", s.rung.name},       {"session", s.rung.session},    {"title", s.rung.title},
              {"changed", s.rung.changed}, {"code_sha256", s.code_sha256}, {"execution", s.execution},
              {"gate_one", s.gate_one}};
    if (!s.trouble.empty()) step["trouble"] = s.trouble;
    if (!s.labels.empty()) step["labels"] = s.labels;
    if (s.timed())
      step.update({{"ms", interval_json(s.ms)},
                   {"warm_ms", s.warm_ms},
                   {"percent_of_peak", s.percent_of_peak},
                   {"peak", s.peak},
                   {"bound_by", s.bound_by},
                   {"of_library", interval_json(s.of_library)}});
    put(step, "dirty_ms", s.dirty_ms);
    put(step, "dirty_of_library", s.dirty_of_library);
    put(step, "sustained_ms", s.sustained_ms);
    if (s.sustained_ms)
      step.update({{"sustained_watts", s.sustained_watts}, {"sustained_sm_mhz", s.sustained_sm_mhz}});
    if (s.timed() && !s.verdict.empty()) step["verdict"] = s.verdict;
    if (s.counts)
      step["counts"] = {{"sectors_per_request", s.counts->sectors_per_request},
                        {"wavefronts_over_ideal", s.counts->wavefronts_over_ideal},
                        {"moved_over_compulsory", s.counts->moved_over_compulsory},
                        {"moved_at_measured", s.counts->at_measured}};
    if (s.effort)
      step.update({{"language", s.effort->written.language},
                   {"lines", s.effort->written.lines},
                   {"tokens", s.effort->written.tokens},
                   {"compile_seconds", s.effort->compile_seconds},
                   {"launch_ms", s.effort->launch_ms}});
    json["steps"].push_back(std::move(step));
  }
}

void from_json(const Json& json, Ladder& l) {
  l.problem = json.at("problem");
  l.title = json.value("title", l.problem);
  l.sizes = json.at("sizes");
  l.backend = json.at("backend");
  l.time = json.at("time");
  l.tool = json.at("tool");
  l.device = json.value("device", "");
  l.driver = json.value("driver", "");
  l.nvcc = json.value("nvcc", "");
  l.copy_bytes_per_second = json.value("copy_bytes_per_second", 0.0);
  l.flops = json.at("flops");
  l.bytes = json.at("bytes");
  l.library = json.value("library", "");
  l.library_ms = json.value("library_ms", 0.0);
  l.library_dirty_ms = json.value("library_dirty_ms", 0.0);
  l.library_sustained_ms = json.value("library_sustained_ms", 0.0);
  l.seconds = json.value("seconds", 0.0);
  l.telemetry = json.value("telemetry", Json());
  for (const Json& step : json.value("steps", Json::array())) {
    LadderStep s;
    s.rung = {
        {}, step.at("rung"), step.value("session", ""), step.value("title", ""), step.value("changed", "")};
    s.code_sha256 = step.value("code_sha256", "");
    s.execution = step.value("execution", "");
    s.gate_one = step.at("gate_one");
    s.trouble = step.value("trouble", "");
    s.labels = step.value("labels", std::vector<std::string>{});
    if (step.contains("ms")) {
      s.ms = interval_from(step["ms"]);
      s.warm_ms = step.value("warm_ms", 0.0);
      s.percent_of_peak = step.value("percent_of_peak", 0.0);
      s.peak = step.value("peak", "");
      s.bound_by = step.value("bound_by", "");
      s.of_library = interval_from(step.at("of_library"));
      s.dirty_ms = optional_interval(step, "dirty_ms");
      s.dirty_of_library = optional_interval(step, "dirty_of_library");
      s.sustained_ms = optional_interval(step, "sustained_ms");
      s.sustained_watts = step.value("sustained_watts", 0.0);
      s.sustained_sm_mhz = step.value("sustained_sm_mhz", 0.0);
      s.verdict = step.value("verdict", "");
    }
    if (step.contains("language"))
      s.effort = LadderStep::Effort{{step["language"], step.value("lines", 0), step.value("tokens", 0)},
                                    step.value("compile_seconds", 0.0),
                                    step.value("launch_ms", 0.0)};
    l.steps.push_back(std::move(s));
  }
}

std::string results_name(const std::string& device) {
  std::string text = device.starts_with("NVIDIA ") ? device.substr(7) : device;
  for (char& c : text)
    c = std::isalnum(static_cast<unsigned char>(c))
            ? static_cast<char>(std::tolower(static_cast<unsigned char>(c)))
            : '_';
  return text;
}

Result<LadderResults> read_results(const fs::path& file) {
  CAPSTONE_TRY(const std::string text, read_file(file, std::size_t{64} << 20));
  try {
    const Json json = parse_recorded(text);
    if (json.at("schema") != 1)
      return fail("these results were written by another version of capstone", file.string(),
                  "record them again: capstone ladder --record");
    return LadderResults{json.at("device"), json.at("ladders").get<std::vector<Ladder>>()};
  } catch (const Json::exception& problem) {
    return fail(std::string("not a file of recorded ladders: ") + problem.what(), file.string(),
                "record it again: capstone ladder --record");
  }
}

Result<void> record_ladder(const fs::path& file, const Ladder& ladder) {
  LadderResults results{ladder.device, {}};
  std::error_code code;
  if (fs::exists(file, code)) {
    CAPSTONE_TRY(results, read_results(file));
    if (results.device != ladder.device)
      return fail("the file holds results of another GPU: " + results.device, file.string(),
                  "choose another file for " + ladder.device);
  }
  auto same = std::find_if(results.ladders.begin(), results.ladders.end(),
                           [&](const Ladder& known) { return known.key() == ladder.key(); });
  if (same != results.ladders.end())
    *same = ladder;
  else
    results.ladders.push_back(ladder);
  std::sort(results.ladders.begin(), results.ladders.end(),
            [](const Ladder& a, const Ladder& b) { return a.key() < b.key(); });
  return write_file_atomic(
      file, Json{{"schema", 1}, {"device", results.device}, {"ladders", results.ladders}}.dump(1) + "\n");
}

std::vector<std::string> recorded_devices(const Resources& resources, const std::string& kind) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(resources.reference_kernels() / "results" / kind, code))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<Ladder>> recorded_everywhere(const Resources& resources, const std::string& kind) {
  std::vector<Ladder> all;
  for (const std::string& device : recorded_devices(resources, kind)) {
    CAPSTONE_TRY(LadderResults results,
                 read_results(resources.reference_kernels() / "results" / kind / (device + ".json")));
    std::move(results.ladders.begin(), results.ladders.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace capstone
