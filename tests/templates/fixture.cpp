#include "fixture.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cmath>
#include <fstream>
#include <stdexcept>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/version.h"
#include "harness/correctness/diagnose.h"

namespace capstone::testing {

namespace {

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string kernel_source(const std::string& version) {
  return "// " + version +
         "\n#include \"problem/launch.h\"\n__global__ void fused(const float* x, float* y) { y[threadIdx.x] "
         "= x[threadIdx.x]; }\n";
}

// Identical on every machine: a small linear congruential generator; sums of its values are roughly normal.
struct Noise {
  std::uint32_t state;
  double operator()() {
    double sum = 0;
    for (int i = 0; i < 4; ++i) {
      state = state * 1664525u + 1013904223u;
      sum += static_cast<double>(state >> 8) / (1 << 24) - 0.5;
    }
    return sum;
  }
};

Arm arm(const std::string& name, const std::string& label, double median, std::uint32_t seed) {
  Arm a{name, label, {median, median * 0.992, median * 1.008}, median * 0.93, median + 0.006, {}};
  Noise noise{seed};
  for (int restart = 0; restart < 5; ++restart) {
    a.samples_ms.emplace_back();
    for (int i = 0; i < 60; ++i)
      a.samples_ms.back().push_back(median * (1 + 0.02 * noise() + (i % 23 == 0 ? 0.04 : 0)));
  }
  return a;
}

constexpr double kReference = 0.82;  // [ms]
constexpr double kBytes = 4.0 * 3 * 16384 * 4096, kFlops = 20.0 * 16384 * 4096;

Measurement blank(const Project& project, const std::string& candidate, const std::string& version,
                  Where where) {
  Measurement m;
  m.candidate = candidate;
  m.version = version;
  m.source = candidate == "human" ? "human/kernel.cu" : "llm/" + version + "/kernel.cu";
  m.source_sha256 = sha256_hex(kernel_source(version));
  m.problem_id = project.problem.id;
  m.problem_digest = project.config.problem_digest;
  bool gpu = where == Where::kGpu;
  m.backend = gpu ? Backend::kCuda : Backend::kEmulated;
  m.execution = gpu ? Execution::kInProcess : Execution::kEmulated;
  m.isolation = "bubblewrap";
  m.environment = gpu ? Json{{"device", "NVIDIA H100 80GB HBM3"},
                             {"uuid", "GPU-5e1f"},
                             {"driver", "580.65"},
                             {"nvcc", "13.0"},
                             {"tool", kToolVersion},
                             {"seconds", {{"warming_up", 1.52}}}}
                      : Json{{"cpu", "AMD EPYC 7763"}, {"compiler", "g++ 12.2"}, {"tool", kToolVersion}};
  m.build.ok = true;
  m.build.seconds = 3.1;
  m.gate_two_reason = gpu ? "" : "not judged here (no GPU)";
  m.seconds = 21;
  return m;
}

CaseResult good_case(const std::string& id) {
  CaseResult c;
  c.id = id;
  c.sizes = {{"rows", 64}, {"cols", 1024}};
  c.seed = "9f1c";
  c.passed = true;
  c.max_abs = 2.1e-6;
  return c;
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  while (times-- > 0) all += text;
  return all;
}

// The counts of `capstone explain` for a version: a strided load on line 3 and a coalesced store.
Explanation explained(const Project& project, const std::string& candidate, const std::string& version) {
  Explanation e;
  e.candidate = candidate;
  e.version = version;
  e.source = candidate == "human" ? "human/kernel.cu" : "llm/" + version + "/kernel.cu";
  e.source_sha256 = sha256_hex(kernel_source(version));
  e.problem_id = project.problem.id;
  e.sizes = {{"rows", 64}, {"cols", 512}};
  LineCounts line;
  line.file = "kernel.cu";
  line.line = 3;
  line.text = "__global__ void fused(…) { y[threadIdx.x] = x[threadIdx.x]; }";
  line.global = {2048, 36864, 8192, 262144, 65536};
  line.loads = line.stores = 1024;
  line.flops = 655360;
  line.share = 1;
  e.kernels = {{"fused", 1, 64, 16384, 0, {line}}};
  e.total = e.kernels.front().total();
  e.compulsory_bytes = 399360;
  e.compulsory_flops = 655360;
  e.advice = {
      {"fused", "kernel.cu", 3, 1, "uncoalesced",
       "a request of a warp touches 18.0 sectors of 32 bytes where 4.0 would do: 4.5 times the traffic",
       "let neighbouring threads access neighbouring addresses"}};
  e.floor = ModelledFloor{
      "NVIDIA H100 80GB HBM3", "NVIDIA H100 data sheet", 0.0001192, 0.000034, 0.0000098, "memory"};
  return e;
}

Measurement wrong(const Project& project, const std::string& candidate, const std::string& version,
                  Where where) {
  Measurement m = blank(project, candidate, version, where);
  m.gate_one = GateOne::kWrong;
  CaseResult bad = good_case("check-0");
  bad.passed = false;
  bad.sizes = {{"rows", 3}, {"cols", 129}};
  bad.problem = "wrong result";
  Diagnosis d;
  d.output = "y";
  d.wrong = 3;
  d.total = 387;
  d.first = {0, 128};
  d.worst = {2, 128};
  d.first_expected = 0.41;
  d.first_got = 0;
  d.worst_expected = -1.73;
  d.worst_got = 0;
  d.pattern = "only the tail of each row is wrong";
  d.hint = "cols is not a multiple of your vector width: what handles the last cols % 4 elements?";
  d.map_of = "y, 1 x 3 elements a cell";
  d.map.assign(3, repeated(kMapCells[0], 42) + std::string(kMapCells[1]));  // the last cell holds the tail
  bad.diagnosis = d;
  m.cases = {bad};
  return m;
}

Measurement broken_build(const Project& project, const std::string& version, Where where) {
  Measurement m = blank(project, "human", version, where);
  m.gate_one = GateOne::kBuildFailed;
  m.build.ok = false;
  m.build.first_error = CompilerMessage{"human/kernel.cu", 31, 9, "identifier \"warp_sum\" is undefined"};
  m.build.log =
      "human/kernel.cu(31): error: identifier \"warp_sum\" is undefined\n    float s = warp_sum(v);\n        "
      "      ^\n1 error detected\n";
  return m;
}

std::string time_of(std::int64_t seq) {
  return fmt::format("2026-03-{:02}T10:{:02}:00Z", 2 + seq / 3, (seq * 7) % 60);
}

void add_record(LedgerView& ledger, const std::string& kind, Json body) {
  Record r;
  r.seq = static_cast<std::int64_t>(ledger.records.size()) + 1;
  r.time = time_of(r.seq);
  r.kind = kind;
  r.tool = kToolVersion;
  r.machine = "a1b2c3d4e5f60718";
  r.body = std::move(body);
  ledger.records.push_back(std::move(r));
}

void add_prediction(LedgerView& ledger) {
  Prediction p{"memory", 3.0, "0.8 GB of traffic at 3.35 TB/s is 0.24 ms; the arithmetic is a tenth of that",
               true};
  ledger.predictions.push_back(p);
  add_record(ledger, "prediction", Json(p));
}

void add_explanation(Capstone& c, const std::string& candidate, const std::string& version) {
  c.ledger.explanations.push_back(explained(c.project, candidate, version));
  add_record(c.ledger, "explanation", Json(c.ledger.explanations.back()));
}

void add_attempt(Capstone& c, int number, const std::string& difference) {
  std::string prompt = "# Task\n\nWrite one CUDA file that defines `launch`.\n",
              reply = fmt::format("Here is attempt {}:\n\n```cuda\n{}```\n", number,
                                  kernel_source(fmt::format("attempt-{}", number)));
  write(c.project.attempt(number) / "prompt.md", prompt);
  write(c.project.attempt(number) / "reply.md", reply);
  Attempt a{number,
            "example-model-4",
            "temperature 0.2, 16k tokens",
            sha256_hex(prompt),
            sha256_hex(reply),
            difference,
            "one fenced block (cuda)",
            ""};
  c.ledger.attempts.push_back(a);
  add_record(c.ledger, "attempt", Json(a));
}

Project make_project(const fs::path& root) {
  Project project;
  project.root = root;
  Result<Problem> problem = load_problem(fs::path(CAPSTONE_SOURCE_DIR) / "problems" / "bias_gelu_layernorm");
  if (!problem) throw std::runtime_error(render(problem.error()));
  project.problem = *problem;
  project.config.members = {{"Ada Example", "s1234567", "ada@example.edu"}};
  project.config.problem_id = problem->id;
  project.config.problem_digest = problem->digest;
  project.config.created = "2026-03-02T09:00:00Z";
  return project;
}

}  // namespace

Scratch::Scratch() {
  std::string pattern = (fs::temp_directory_path() / "capstone-report-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}
Scratch::~Scratch() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Resources test_resources() {
  Resources resources;
  resources.share = CAPSTONE_SOURCE_DIR;
  resources.path_variable = "/usr/local/bin:/usr/bin:/bin";
  resources.version = kToolVersion;
  return resources;
}

void add_measurement(Capstone& c, const Measurement& m) {
  (m.candidate == "human" ? c.ledger.human : c.ledger.llm).push_back(m);
  add_record(c.ledger, "measurement", Json(m));
}

Measurement passed(const Project& project, const std::string& candidate, const std::string& version,
                   double speedup, Where where) {
  Measurement m = blank(project, candidate, version, where);
  m.gate_one = GateOne::kPassed;
  m.cases = {good_case("check-0"), good_case("check-1"), good_case("hidden-0"), good_case("hidden-1"),
             good_case("measure")};
  Measured d;
  double own = kReference / speedup;
  auto seed = static_cast<std::uint32_t>(speedup * 1000);
  d.flops = kFlops;
  d.bytes = kBytes;
  d.sizes = {{"rows", 16384}, {"cols", 4096}};
  if (where == Where::kGpu) {
    d.clock = "GPU-cold events";
    d.arms = {arm("native", "three CUDA kernels, one per PyTorch operator", kReference, 7),
              arm("A/A", "the same again", kReference * 1.002, 11), arm(candidate, version, own, seed)};
    d.speedup = Interval{speedup, speedup * 0.985, speedup * 1.015};
    d.floor = 0.01;
    d.percent_of_peak = 100 * (kBytes / (own / 1e3)) / 3.35e12;
    d.peak = "3.35 TB/s HBM3 (data sheet)";
    d.bound_by = "memory";
    m.gate_two = speedup > 1.03 ? GateTwo::kFaster : speedup < 0.97 ? GateTwo::kSlower : GateTwo::kTie;
  } else {
    d.clock = "emulated (CPU time; counts for nothing)";
    d.arms = {arm(candidate, version, 40 / speedup, seed)};
  }
  m.measured = d;
  return m;
}

void add_versions(Capstone& c, int last, Where where) {
  for (int number = 5; number <= last; ++number) {
    const std::string version = fmt::format("v{}", number);
    const bool fails = number % 9 == 3;
    Measurement m = fails ? wrong(c.project, "human", version, where)
                          : passed(c.project, "human", version,
                                   2.4 + 0.09 * number + 0.4 * std::sin(0.7 * number), where);
    if (fails) {  // a map as large as they get: a wrong tile in every other column of blocks
      Diagnosis& d = *m.cases.front().diagnosis;
      d.map_of = "y, 4 x 8 elements a cell";
      d.map.assign(kMapLines, repeated(kMapCells[0], kMapColumns));
      for (std::size_t line = 8; line < d.map.size(); ++line)
        d.map[line] = repeated(repeated(kMapCells[4], 8) + repeated(kMapCells[line % 4], 8), 4);
    }
    m.reason =
        fmt::format("step {}: another tile size, and the loads of the next tile begin earlier", number);
    m.expected_speedup = 2.5 + 0.1 * number;
    add_measurement(c, m);
    if (fails) continue;
    add_explanation(c, "human", version);
    Explanation& e = c.ledger.explanations.back();
    e.total.global.units = static_cast<std::uint64_t>(36864 - 400 * number + (number % 7) * 300);
    e.total.shared = {4096, static_cast<std::uint64_t>(4096 + 60 * (60 - number)), 4096, 524288, 131072};
    e.floor->wavefront_ms = 0.00003 + 0.000004 * (60 - number);
    c.ledger.records.back().body = Json(e);
  }
}

std::string fixture_worklog(Where where) {
  Result<std::string> text = read_file(fs::path(CAPSTONE_SOURCE_DIR) / "tests" / "templates" /
                                       (where == Where::kGpu ? "worklog_gpu.md" : "worklog_emulated.md"));
  if (!text) throw std::runtime_error(render(text.error()));
  return *text;
}

void write_worklog(const Capstone& c, const std::string& text) { write(c.project.worklog(), text); }

Capstone make_capstone(const fs::path& root, Where where) {
  Capstone c;
  c.project = make_project(root);
  write(c.project.human_kernel(), kernel_source("v4"));
  Result<std::string> reference = read_file(c.project.problem.folder / "reference.py");
  if (reference) write(root / "problem" / "reference.py", *reference);
  write_worklog(c, fixture_worklog(where));

  add_record(c.ledger, "init", {{"problem", c.project.problem.id}});
  add_prediction(c.ledger);
  auto human = [&](Measurement m, const char* reason, std::optional<double> expected) {
    m.reason = reason;
    m.expected_speedup = expected;
    add_measurement(c, m);
  };
  human(broken_build(c.project, "v1", where), "one thread a row, to have something correct", {});
  human(passed(c.project, "human", "v1", 0.21, where), "one thread a row, to have something correct", {});
  human(passed(c.project, "human", "v2", 1.62, where), "one block a row, two passes in shared memory", 1.5);
  human(wrong(c.project, "human", "v3", where), "float4 loads, a row in registers", 2.5);
  human(passed(c.project, "human", "v4", 2.31, where), "float4 with a scalar tail", 2.5);
  add_attempt(c, 1, "");
  add_measurement(c, wrong(c.project, "llm", "attempt-1", where));
  add_attempt(c, 2,
              "--- template\n+++ prompt\n@@ -3 +3 @@\n-Write one CUDA file.\n+Write one CUDA file. Mind "
              "ragged row lengths.\n");
  add_measurement(c, passed(c.project, "llm", "attempt-2", 1.88, where));
  add_explanation(c, "human", "v4");
  return c;
}

}  // namespace capstone::testing
