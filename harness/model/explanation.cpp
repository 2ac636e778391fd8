#include "harness/model/explanation.h"

#include <algorithm>
#include <filesystem>

#include "harness/model/fields.h"
#include "harness/model/sizes_text.h"

namespace capstone {
namespace {

Json to(const Traffic& t) {
  return {{"requests", t.requests},
          {"units", t.units},
          {"ideal", t.ideal},
          {"bytes", t.bytes},
          {"active_lanes", t.active_lanes},
          {"bulk", t.bulk}};
}
Traffic traffic_from(const Json& json) {
  Traffic t;
  read(json, "requests", t.requests);
  read(json, "units", t.units);
  read(json, "ideal", t.ideal);
  read(json, "bytes", t.bytes);
  read(json, "active_lanes", t.active_lanes);
  read(json, "bulk", t.bulk);
  return t;
}

Json to(const ArrayTraffic& a) {
  return {{"name", a.name},
          {"shared", a.shared},
          {"access", a.access},
          {"size", a.size},
          {"traffic", to(a.traffic)}};
}
ArrayTraffic array_from(const Json& json) {
  ArrayTraffic a;
  read(json, "name", a.name);
  read(json, "shared", a.shared);
  read(json, "access", a.access);
  read(json, "size", a.size);
  read_with(json, "traffic", a.traffic, traffic_from);
  return a;
}

Json to(const LineCounts& c) {
  Json json = Json::object();
  if (c.line) json = {{"file", c.file}, {"line", c.line}, {"text", c.text}};
  json.update(Json{{"global", to(c.global)},
                   {"shared", to(c.shared)},
                   {"loads", c.loads},
                   {"stores", c.stores},
                   {"store_sectors", c.store_sectors},
                   {"flops", c.flops},
                   {"barriers", c.barriers},
                   {"atomics", c.atomics},
                   {"share", c.share}});
  if (c.tensor.any()) json["tensor_memory"] = c.tensor;
  for (const ArrayTraffic& array : c.arrays) json["arrays"].push_back(to(array));
  return json;
}
LineCounts line_from(const Json& json) {
  LineCounts c;
  read(json, "file", c.file);
  read(json, "line", c.line);
  read(json, "text", c.text);
  read_with(json, "global", c.global, traffic_from);
  read_with(json, "shared", c.shared, traffic_from);
  read(json, "loads", c.loads);
  read(json, "stores", c.stores);
  read(json, "store_sectors", c.store_sectors);
  read(json, "flops", c.flops);
  read(json, "barriers", c.barriers);
  read(json, "atomics", c.atomics);
  read(json, "share", c.share);
  if (json.contains("tensor_memory")) c.tensor = json["tensor_memory"].get<TensorMemoryTraffic>();
  read_each(json, "arrays", c.arrays, array_from);
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
  read(json, "kernel", k.kernel);
  read(json, "function", k.function);
  read(json, "launches", k.launches);
  read(json, "blocks", k.blocks);
  read(json, "threads", k.threads);
  read(json, "dynamic_shared", k.dynamic_shared);
  read_each(json, "lines", k.lines, line_from);
  return k;
}

Json to(const Advice& r) {
  return {{"kernel", r.kernel},   {"file", r.file}, {"line", r.line},    {"share", r.share},
          {"pattern", r.pattern}, {"what", r.what}, {"remedy", r.remedy}};
}
Advice advice_from(const Json& json) {
  Advice r;
  read(json, "kernel", r.kernel);
  read(json, "file", r.file);
  read(json, "line", r.line);
  read(json, "share", r.share);
  read(json, "pattern", r.pattern);
  read(json, "what", r.what);
  read(json, "remedy", r.remedy);
  return r;
}

ModelledFloor floor_from(const Json& json) {
  ModelledFloor f;
  read(json, "device", f.device);
  read(json, "source", f.source);
  read(json, "bound_by", f.bound_by);
  read(json, "memory_ms", f.memory_ms);
  read(json, "wavefront_ms", f.wavefront_ms);
  read(json, "compute_ms", f.compute_ms);
  read(json, "scale", f.scale);
  read(json, "work_ms", f.work_ms);
  read(json, "by_rule", f.by_rule);
  if (const Json* sizes = field(json, "sizes"); sizes && sizes->is_object()) f.sizes = *sizes;
  return f;
}

}  // namespace

void Traffic::add(const Traffic& other) {
  requests += other.requests;
  units += other.units;
  ideal += other.ideal;
  bytes += other.bytes;
  active_lanes += other.active_lanes;
  bulk += other.bulk;
}

Traffic LineCounts::both() const {
  Traffic sum = global;
  sum.add(shared);
  return sum;
}

void TensorMemoryTraffic::add(const TensorMemoryTraffic& other) {
  loaded += other.loaded;
  stored += other.stored;
  engine_read += other.engine_read;
  engine_written += other.engine_written;
  for (const auto& [kind, count] : other.flops) flops[kind] += count;
}

void to_json(Json& json, const TensorMemoryTraffic& t) {
  json = {{"loaded", t.loaded},
          {"stored", t.stored},
          {"engine_read", t.engine_read},
          {"engine_written", t.engine_written},
          {"flops", t.flops}};
}
void from_json(const Json& json, TensorMemoryTraffic& t) {
  read(json, "loaded", t.loaded);
  read(json, "stored", t.stored);
  read(json, "engine_read", t.engine_read);
  read(json, "engine_written", t.engine_written);
  if (const auto flops = json.find("flops"); flops != json.end() && flops->is_object())
    for (const auto& [kind, count] : flops->items()) read(*flops, kind.c_str(), t.flops[kind]);
}

void LineCounts::add(const LineCounts& other) {
  tensor.add(other.tensor);
  global.add(other.global);
  shared.add(other.shared);
  loads += other.loads;
  stores += other.stores;
  store_sectors += other.store_sectors;
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

void to_json(Json& json, const ModelledFloor& f) {
  json = Json{{"modelled_not_measured", true},
              {"device", f.device},
              {"source", f.source},
              {"ms", f.ms()},
              {"bound_by", f.bound_by},
              {"memory_ms", f.memory_ms},
              {"wavefront_ms", f.wavefront_ms},
              {"compute_ms", f.compute_ms},
              {"sizes", f.sizes},
              {"scale", f.scale},
              {"work_ms", f.work_ms},
              {"by_rule", f.by_rule}};
}

std::string ModelledFloor::place() const {
  return sizes.empty() ? device : device + " at " + sizes_text(sizes);
}

std::string Explanation::place_of_shares() const { return sizes_text(shares_at.empty() ? sizes : shares_at); }

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
  if (e.floor) json["floor"] = *e.floor;
  if (!e.shares_at.empty()) json["shares_at"] = e.shares_at;
  if (!e.caution.empty()) json["caution"] = e.caution;
}

void from_json(const Json& json, Explanation& e) {
  e = Explanation{};
  read(json, "candidate", e.candidate);
  read(json, "version", e.version);
  read(json, "source", e.source);
  read(json, "source_sha256", e.source_sha256);
  read(json, "problem_id", e.problem_id);
  read_counts(json, "sizes", e.sizes);
  read_with(json, "total", e.total, line_from);
  read(json, "compulsory_bytes", e.compulsory_bytes);
  read(json, "compulsory_flops", e.compulsory_flops);
  read_each(json, "advice", e.advice, advice_from);
  read_each(json, "kernels", e.kernels, kernel_from);
  if (const Json* at = field(json, "shares_at"); at && at->is_object()) e.shares_at = *at;
  read(json, "caution", e.caution);
  if (ModelledFloor floor; read_with(json, "floor", floor, floor_from)) e.floor = std::move(floor);
}

}  // namespace capstone
