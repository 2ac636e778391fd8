#include "tests/emulator/bench_of_kernels.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <tuple>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "tests/resources.h"

namespace capstone::test {
namespace fs = std::filesystem;

Problem vector_problem() {
  Problem problem;
  problem.id = "vector";
  problem.symbols = {"n"};
  Parameter x, y;
  x.name = "x";
  x.role = Role::kInput;
  x.shape = {Expression{"n"}};
  y.name = "y";
  y.role = Role::kOutput;
  y.shape = {Expression{"n"}};
  problem.signature = {x, y};
  return problem;
}

const Resources& test_resources() {
  static const Resources resources = [] {
    Resources r = suite_resources_and_headers();
    r.ignore_toolkit = !environment("CAPSTONE_TEST_IGNORE_TOOLKIT").empty();
    return r;
  }();
  return resources;
}

EmulatedArtifact build(const std::string& source, int cuda_arch, BuildVariant variant) {
  static std::map<std::tuple<std::string, int, BuildVariant>, EmulatedArtifact> built;
  const std::tuple key{source, cuda_arch, variant};
  auto it = built.find(key);
  if (it == built.end()) it = built.emplace(key, build_afresh(source, cuda_arch, variant)).first;
  return it->second;
}

EmulatedArtifact build_afresh(const std::string& source, int cuda_arch, BuildVariant variant,
                              const std::string& place) {
  const fs::path folder =
      fs::path(CAPSTONE_TEST_CACHE) / "sources" / (sha256_hex(source).substr(0, 16) + place);
  fs::create_directories(folder);
  // Whole or not at all: other test programs build the same source at the same time.
  if (auto written = write_file_atomic(folder / "kernel.cu", source); !written)
    ADD_FAILURE() << render(written.error());
  const Problem problem = vector_problem();
  BuildRequest request;
  request.problem = &problem;
  request.source = folder / "kernel.cu";
  request.resources = &test_resources();
  request.cuda_arch = cuda_arch;
  request.variant = variant;
  auto artifact = build_emulated(request);
  if (!artifact) {
    ADD_FAILURE() << render(artifact.error());
    return {};
  }
  return std::move(*artifact);
}

Workbench::Workbench(const fs::path& program, std::vector<float> x, std::size_t outputs)
    : inputs_(x.size()), outputs_(outputs), bytes_(((x.size() + outputs) * 4 + 511) / 256 * 256 + 4096) {
  memory_ = ::memfd_create("arena", MFD_CLOEXEC);
  if (::ftruncate(memory_, static_cast<off_t>(bytes_)) != 0) ADD_FAILURE() << "no memory";
  arena_ = static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0));
  std::memcpy(arena_ + at_x(), x.data(), x.size() * 4);
  std::memset(arena_ + at_y(), 0xFF, outputs * 4);
  auto pair = Channel::make();
  ProcessSpec spec;
  spec.argv = {program.string()};
  spec.fds = {{pair->second.get(), 3}};
  auto child = Child::start(spec);
  if (!child) {
    ADD_FAILURE() << render(child.error());
    return;
  }
  child_ = std::make_unique<Child>(std::move(*child));
  channel_ = std::make_unique<Channel>(std::move(pair->first));
  EXPECT_EQ(ask({{"op", "hello"}}).value("backend", ""), "emulated");
  EXPECT_TRUE(ask({{"op", "arena"}, {"bytes", bytes_}}, memory_).value("ok", false));
}

Workbench::~Workbench() {
  if (channel_) (void)channel_->send({{"op", "quit"}}, -1, std::chrono::seconds(1));
  if (child_) child_->finish(std::chrono::seconds(2));
  ::munmap(arena_, bytes_);
  ::close(memory_);
}

Json Workbench::ask(const Json& request, int descriptor) {
  if (!channel_ || !channel_->send(request, descriptor, std::chrono::seconds(30))) return Json::object();
  auto packet = channel_->receive(std::chrono::seconds(30), [this] { return child_->running(); });
  return packet ? packet->message : Json{{"ok", false}, {"kind", "silence"}};
}

Json Workbench::request(const std::string& schedule, std::uint64_t seed) const {
  const Json arguments = {Json{{"at", at_x()}}, Json{{"at", at_y()}},
                          Json{{"i64", std::max(inputs_, outputs_)}}};
  const Json extents = {Json{{"name", "x"}, {"at", at_x()}, {"bytes", inputs_ * 4}, {"written", true}},
                        Json{{"name", "y"}, {"at", at_y()}, {"bytes", outputs_ * 4}, {"written", false}}};
  return {{"op", "run"}, {"args", arguments}, {"extents", extents}, {"schedule", schedule}, {"seed", seed}};
}

Json Workbench::run(const std::string& schedule, std::uint64_t seed, const Json& more) {
  Json wanted = request(schedule, seed);
  wanted.update(more);
  return ask(wanted);
}

Json Workbench::observe(const std::string& schedule, std::uint64_t seed) {
  Json wanted = request(schedule, seed);
  wanted["observe"] = true;
  if (!channel_ || !channel_->send(wanted, -1, std::chrono::seconds(60))) return Json::object();
  auto packet = channel_->receive(std::chrono::seconds(60), [] { return true; });
  if (!packet) return Json{{"ok", false}, {"kind", "silence"}};
  std::string text(packet->message.value("report_bytes", std::size_t{0}), ' ');
  if (packet->fd &&
      ::pread(packet->fd.get(), text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()))
    packet->message["report"] = Json::parse(text, nullptr, false);
  return packet->message;
}

void Workbench::set_x(std::size_t index, float value) { std::memcpy(arena_ + at_x() + 4 * index, &value, 4); }

std::vector<float> Workbench::y() const {
  std::vector<float> values(outputs_);
  std::memcpy(values.data(), arena_ + at_y(), outputs_ * 4);
  return values;
}

std::vector<float> evaluate(const std::string& source, const std::vector<float>& x, std::size_t outputs,
                            const std::string& schedule) {
  const EmulatedArtifact artifact = build(source);
  EXPECT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  if (!artifact.result.ok) return {};
  Workbench bench(artifact.program, x, outputs);
  const Json answer = bench.run(schedule);
  EXPECT_TRUE(answer.value("ok", false)) << schedule << ": " << answer.dump();
  return answer.value("ok", false) ? bench.y() : std::vector<float>{};
}

Json failure_of(const std::string& source, std::size_t n, const std::string& schedule, BuildVariant variant) {
  const EmulatedArtifact artifact = build(source, 900, variant);
  EXPECT_TRUE(artifact.result.ok) << artifact.result.log << artifact.not_judgeable;
  if (!artifact.result.ok) return Json::object();
  Workbench bench(artifact.program, std::vector<float>(n, 1.f), n);
  const Json answer = bench.run(schedule);
  EXPECT_FALSE(answer.value("ok", true)) << answer.dump();
  return answer;
}

int line_of(const std::string& source, const std::string& marker) {
  const std::size_t at = source.find(marker);
  return at == std::string::npos
             ? 0
             : 1 + static_cast<int>(
                       std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
}

}  // namespace capstone::test
