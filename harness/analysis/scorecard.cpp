#include "harness/analysis/scorecard.h"

#include <algorithm>
#include <array>

#include "harness/analysis/ladder/ladder.h"
#include "harness/base/files.h"
#include "harness/model/upgrade.h"

namespace capstone {
namespace {

struct Published {
  const char *name, *sizes, *strict, *loose;  ///< ids of the problems; loose may be the strict one
  Json at;                                    ///< the sizes in the problem's symbols
  double ratio;
  const char *in_fp32, *at_1e_2;
};

const std::vector<Published>& published() {
  static const Json image = {{"n", 100}, {"c_in", 3}, {"h", 224}, {"w", 224}, {"c_out", 96}};
  static const std::vector<Published> all{
      {"Matmul",
       "4096 x 4096 x 4096",
       "sgemm",
       "sgemm",
       {{"m", 4096}, {"k", 4096}, {"n", 4096}},
       1.01,
       "a tie with cuBLAS is the natural result",
       "sums of 4096 products of normal numbers: rounding operands to fp16 or TF32 errs by about 2e-2, more "
       "than "
       "1e-2 allows near zero, so this class is no easier"},
      {"Conv2D", "100 x 3 x 224 x 224, 96 of 11 x 11, stride 4", "conv2d", "conv2d_loose", image, 1.80,
       "does not survive: the published kernel multiplies fp16 on tensor cores, against an fp32 reference; "
       "gate one "
       "refuses what fp16 rounds",
       "survives as a statement about fp16 against fp32; here the reference may use TF32"},
      {"Softmax",
       "4096 x 65536",
       "softmax",
       "softmax",
       {{"rows", 4096}, {"cols", 65536}},
       1.12,
       "survives: bound by memory, and lower precision would save nothing",
       "as in fp32: inputs and outputs are fp32, and bytes are the limit"},
      {"LayerNorm",
       "16 x 64 x 256 x 256",
       "layernorm",
       "layernorm",
       {{"n", 16}, {"c", 64}, {"h", 256}, {"w", 256}},
       4.84,
       "survives: the reference gives a sample to one block, 16 blocks in all",
       "as in fp32: inputs and outputs are fp32, and bytes are the limit"},
      {"Conv2D + ReLU + MaxPool", "100 x 3 x 224 x 224, 96 of 11 x 11, stride 4; 3 x 3, step 2",
       "conv2d_relu_maxpool", "conv2d_relu_maxpool_loose", image, 2.90,
       "not as it was published; what fusion saves remains",
       "survives as a statement about fp16 and fusion against fp32; here the reference may use TF32"},
  };
  return all;
}

// A ladder's results hold all rungs; the fastest one that passed counts.
void add_ladder(const Ladder& ladder, std::vector<ScoredKernel>& here) {
  const LadderStep* best = nullptr;
  for (const LadderStep& step : ladder.steps)
    if (step.timed() && step.gate_one == "PASS" && (!best || step.ms.point < best->ms.point)) best = &step;
  if (best && ladder.library_ms > 0)
    here.push_back({"reference kernel " + best->rung.name,
                    ladder.device,
                    {{ladder.library_ms / best->ms.point, "native"}}});
}

// A record with PyTorch's arms: the kernel's own is the last one, "human".
void add_record(const Json& record, std::vector<ScoredKernel>& here) {
  if (record.value("gate_one", "") != "passed") return;
  double own = 0;
  for (const Json& arm : record.value("arms", Json::array()))
    if (arm.value("name", "") == "human") own = arm.at("median_ms").at("point").get<double>();
  if (own <= 0) return;
  ScoredKernel kernel{record.value("kernel", ""), record.value("device", ""), {}};
  for (const Json& arm : record["arms"]) {
    const std::string name = arm.value("name", "");
    if (name == "eager" || name == "compile" || name == "native")
      kernel.ratios.push_back({arm.at("median_ms").at("point").get<double>() / own, name});
  }
  // One measurement with all arms says more than a ladder's with one.
  std::erase_if(here, [&](const ScoredKernel& k) { return k.device == kernel.device; });
  here.push_back(std::move(kernel));
}

struct Evidence {
  std::vector<Ladder> ladders;
  std::vector<Json> records;
};

std::vector<fs::path> sorted_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

Result<Evidence> evidence(const Resources& resources) {
  Evidence all;
  for (const fs::path& file : sorted_files(resources.reference_kernels() / "results")) {
    if (file.extension() != ".json") continue;
    CAPSTONE_TRY(LadderResults results, read_results(file));
    std::move(results.ladders.begin(), results.ladders.end(), std::back_inserter(all.ladders));
  }
  std::error_code code;
  for (const fs::path& device : sorted_files(resources.share / "gpu" / "records")) {
    const fs::path file = device / "pytorch.json";
    if (!fs::is_regular_file(file, code)) continue;
    CAPSTONE_TRY(const std::string text, read_file(file, std::size_t{64} << 20));
    const Json records = parse_recorded(text);
    if (!records.is_array()) return fail("not a list of records", file.string());
    for (const Json& record : records)
      if (record.is_object()) all.records.push_back(record);
  }
  return all;
}

}  // namespace

Result<std::vector<ScoreRow>> scorecard(const Resources& resources) {
  CAPSTONE_TRY(const Evidence all, evidence(resources));
  std::vector<ScoreRow> rows;
  for (const Published& each : published())
    for (const bool strict : {true, false}) {
      ScoreRow row{each.name,  each.sizes, strict ? each.strict : each.loose,   strict ? "fp32" : "1e-2",
                   each.ratio, {},         strict ? each.in_fp32 : each.at_1e_2};
      for (const Ladder& ladder : all.ladders)
        if (ladder.problem == row.problem && ladder.sizes == each.at) add_ladder(ladder, row.here);
      try {
        for (const Json& record : all.records)
          if (record.value("problem", "") == row.problem && record.value("sizes", Json()) == each.at)
            add_record(record, row.here);
      } catch (const std::exception& problem) {
        return fail(std::string("a record with PyTorch's times is damaged: ") + problem.what(),
                    (resources.share / "gpu" / "records").string());
      }
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace capstone
