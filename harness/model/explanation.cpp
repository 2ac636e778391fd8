#include "harness/model/explanation.h"

#include <algorithm>
#include <filesystem>

namespace capstone {
namespace {

// A missing field keeps its default, so older records stay readable when a structure gets new fields.
template <class T>
void read_field(const Json& json, const char* key, T& into) {
  if (auto found = json.find(key); found != json.end() && !found->is_null()) into = found->get<T>();
}

Json to(const Traffic& t) {
  return {{"requests", t.requests},
          {"units", t.units},
          {"ideal", t.ideal},
          {"bytes", t.bytes},
          {"active_lanes", t.active_lanes}};
}
Traffic traffic_from(const Json& json) {
  Traffic t;
  read_field(json, "requests", t.requests);
  read_field(json, "units", t.units);
  read_field(json, "ideal", t.ideal);
  read_field(json, "bytes", t.bytes);
  read_field(json, "active_lanes", t.active_lanes);
  return t;
}

Json to(const LineCounts& c) {
  Json json = Json::object();
  if (c.line) json = {{"file", c.file}, {"line", c.line}, {"text", c.text}};
  json.update(Json{{"global", to(c.global)},
                   {"shared", to(c.shared)},
                   {"loads", c.loads},
                   {"stores", c.stores},
                   {"flops", c.flops},
                   {"barriers", c.barriers},
                   {"atomics", c.atomics},
                   {"share", c.share}});
  return json;
}
LineCounts line_from(const Json& json) {
  LineCounts c;
  read_field(json, "file", c.file);
  read_field(json, "line", c.line);
  read_field(json, "text", c.text);
  if (json.contains("global")) c.global = traffic_from(json["global"]);
  if (json.contains("shared")) c.shared = traffic_from(json["shared"]);
  read_field(json, "loads", c.loads);
  read_field(json, "stores", c.stores);
  read_field(json, "flops", c.flops);
  read_field(json, "barriers", c.barriers);
  read_field(json, "atomics", c.atomics);
  read_field(json, "share", c.share);
  return c;
}

Json to(const KernelCounts& k) {
  Json json{{"kernel", k.kernel},    {"function", k.function}, {"launches", k.launches},
            {"blocks", k.blocks},    {"threads", k.threads},   {"dynamic_shared", k.dynamic_shared},
            {"lines", Json::array()}};
  for (const LineCounts& line : k.lines) json["lines"].push_back(to(line));
  return json;
}
KernelCounts kernel_from(const Json& json) {
  KernelCounts k;
  read_field(json, "kernel", k.kernel);
  read_field(json, "function", k.function);
  read_field(json, "launches", k.launches);
  read_field(json, "blocks", k.blocks);
  read_field(json, "threads", k.threads);
  read_field(json, "dynamic_shared", k.dynamic_shared);
  if (json.contains("lines"))
    for (const Json& line : json["lines"]) k.lines.push_back(line_from(line));
  return k;
}

Json to(const Advice& r) {
  return {{"kernel", r.kernel},   {"file", r.file}, {"line", r.line},    {"share", r.share},
          {"pattern", r.pattern}, {"what", r.what}, {"remedy", r.remedy}};
}
Advice advice_from(const Json& json) {
  Advice r;
  read_field(json, "kernel", r.kernel);
  read_field(json, "file", r.file);
  read_field(json, "line", r.line);
  read_field(json, "share", r.share);
  read_field(json, "pattern", r.pattern);
  read_field(json, "what", r.what);
  read_field(json, "remedy", r.remedy);
  return r;
}

Json to(const ModelledFloor& f) {
  return {{"modelled_not_measured", true},
          {"device", f.device},
          {"source", f.source},
          {"ms", f.ms()},
          {"bound_by", f.bound_by},
          {"memory_ms", f.memory_ms},
          {"wavefront_ms", f.wavefront_ms},
          {"compute_ms", f.compute_ms}};
}
ModelledFloor floor_from(const Json& json) {
  ModelledFloor f;
  read_field(json, "device", f.device);
  read_field(json, "source", f.source);
  read_field(json, "bound_by", f.bound_by);
  read_field(json, "memory_ms", f.memory_ms);
  read_field(json, "wavefront_ms", f.wavefront_ms);
  read_field(json, "compute_ms", f.compute_ms);
  return f;
}

}  // namespace

void Traffic::add(const Traffic& other) {
  requests += other.requests;
  units += other.units;
  ideal += other.ideal;
  bytes += other.bytes;
  active_lanes += other.active_lanes;
}

void LineCounts::add(const LineCounts& other) {
  global.add(other.global);
  shared.add(other.shared);
  loads += other.loads;
  stores += other.stores;
  flops += other.flops;
  barriers += other.barriers;
  atomics += other.atomics;
  share += other.share;
}

LineCounts KernelCounts::total() const {
  LineCounts sum;
  for (const LineCounts& line : lines) sum.add(line);
  return sum;
}

bool lies_in_folder(const std::string& file) {
  const std::filesystem::path path(file);
  return !file.empty() && path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end();
}

double ModelledFloor::ms() const { return std::max({memory_ms, wavefront_ms, compute_ms}); }

void to_json(Json& json, const Explanation& e) {
  json = Json{{"candidate", e.candidate},
              {"version", e.version},
              {"source", e.source},
              {"source_sha256", e.source_sha256},
              {"problem_id", e.problem_id},
              {"sizes", e.sizes},
              {"total", to(e.total)},
              {"moved_bytes", e.moved_bytes()},
              {"compulsory_bytes", e.compulsory_bytes},
              {"compulsory_flops", e.compulsory_flops},
              {"intensity", e.intensity()},
              {"advice", Json::array()},
              {"kernels", Json::array()}};
  for (const Advice& advice : e.advice) json["advice"].push_back(to(advice));
  for (const KernelCounts& kernel : e.kernels) json["kernels"].push_back(to(kernel));
  if (e.floor) json["floor"] = to(*e.floor);
}

void from_json(const Json& json, Explanation& e) {
  e = Explanation{};
  read_field(json, "candidate", e.candidate);
  read_field(json, "version", e.version);
  read_field(json, "source", e.source);
  read_field(json, "source_sha256", e.source_sha256);
  read_field(json, "problem_id", e.problem_id);
  read_field(json, "sizes", e.sizes);
  if (json.contains("total")) e.total = line_from(json["total"]);
  read_field(json, "compulsory_bytes", e.compulsory_bytes);
  read_field(json, "compulsory_flops", e.compulsory_flops);
  if (json.contains("advice"))
    for (const Json& advice : json["advice"]) e.advice.push_back(advice_from(advice));
  if (json.contains("kernels"))
    for (const Json& kernel : json["kernels"]) e.kernels.push_back(kernel_from(kernel));
  if (json.contains("floor")) e.floor = floor_from(json["floor"]);
}

}  // namespace capstone
