// What the hooks cost: the tiled product of 128³, in the fast build and in the hooks build, and with a report of all counts.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <optional>

#include "harness/build/build.h"
#include "harness/check/inputs.h"
#include "harness/judge/cases.h"
#include "harness/judge/gate_one.h"
#include "harness/worker/worker.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;

/// A worker with the tiled product of 128³ in its arena.
class Product {
 public:
  static Result<std::unique_ptr<Product>> start(Flavour flavour) {
    auto self = std::make_unique<Product>();
    CAPSTONE_TRY(self->problem_, load_problem(fs::path(CAPSTONE_SOURCES) / "problems" / "sgemm"));
    self->resources_.share = CAPSTONE_SHARE;
    self->resources_.libexec = CAPSTONE_LIBEXEC;
    self->resources_.cache = CAPSTONE_BENCH_CACHE;
    const char* path = std::getenv("PATH");
    self->resources_.path_variable = path ? path : "/usr/bin:/bin";
    const Sandbox sandbox = Sandbox::detect(self->resources_);
    BuildRequest build;
    build.problem = &self->problem_;
    build.source = fs::path(CAPSTONE_SOURCES) / "reference_kernels/L4_gemm_ladder_one/sgemm/03_shared_tile.cu";
    build.resources = &self->resources_;
    build.sandbox = &sandbox;
    build.flavour = flavour;
    CAPSTONE_TRY(EmulatedArtifact artifact, build_emulated(build));
    if (!artifact.result.ok) return fail("the kernel does not build", build.source.string(), artifact.result.log);
    const Sizes sizes{{"m", 128}, {"n", 128}, {"k", 128}};
    CAPSTONE_TRY(Layout layout, make_layout(self->problem_, sizes, 0));
    CAPSTONE_TRY(int descriptor, self->arena_.resize(layout.bytes));
    std::vector<std::byte> image(layout.bytes);
    for (const TensorSlot& slot : layout.tensors)
      if (self->problem_.signature[static_cast<std::size_t>(slot.parameter)].role != Role::kOutput)
        CAPSTONE_CHECK(fill_tensor(self->problem_, slot.parameter, sizes, 1, Battery::kPlain,
                                   std::span(image).subspan(slot.offset, slot.bytes)));
    CAPSTONE_CHECK(self->arena_.load(image));
    CAPSTONE_TRY(Json args, call_arguments(self->problem_, layout, sizes));
    self->request_ = {{"op", "run"}, {"args", args}, {"schedule", "forward"}, {"seed", 1},
                      {"extents", extents(self->problem_, layout, false)}, {"workspace", nullptr}};
    auto worker = Worker::start({artifact.program.string()}, sandbox, WorkerLimits{}, false);
    if (!worker) return fail(worker.error().what);
    self->worker_.emplace(std::move(*worker));
    auto mapped = self->worker_->ask({{"op", "arena"}, {"bytes", layout.bytes}}, std::chrono::seconds(20), descriptor);
    if (!mapped) return fail(mapped.error().what);
    return self;
  }

  /// Milliseconds of the run as the worker measured them; nothing when it failed.
  std::optional<double> run(bool observe) {
    Json request = request_;
    if (observe) request["observe"] = true;
    auto answer = worker_->ask(request, std::chrono::minutes(1));
    if (!answer) return std::nullopt;
    return answer->message.value("ms", 0.0);
  }

 private:
  Problem problem_;
  Resources resources_;
  MemfdArena arena_;
  Json request_;
  std::optional<Worker> worker_;
};

/// `report`: the time is that of the whole answer, with every count by line.
void product(benchmark::State& state, Flavour flavour, bool report) {
  auto started = Product::start(flavour);
  if (!started) return state.SkipWithError(render(started.error()).c_str());
  for (auto unused : state) {
    const auto begin = std::chrono::steady_clock::now();
    const auto milliseconds = (*started)->run(report);
    if (!milliseconds) return state.SkipWithError("the run failed");
    const std::chrono::duration<double> whole = std::chrono::steady_clock::now() - begin;
    state.SetIterationTime(report ? whole.count() : *milliseconds / 1000);
  }
}

BENCHMARK_CAPTURE(product, tiled_128_fast, Flavour::kFast, false)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(product, tiled_128_hooks, Flavour::kHooks, false)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(product, tiled_128_hooks_report, Flavour::kHooks, true)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace capstone
