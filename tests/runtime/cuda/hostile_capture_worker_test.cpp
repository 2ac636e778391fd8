// The judge's side of replayed execution, and of the memory that it shares with a candidate.
#include "tests/runtime/cuda/hostile_capture_worker.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/gate_one.h"

namespace capstone {
namespace {

using ::testing::HasSubstr;

std::string refusal(const Json& message, const std::vector<std::byte>& bytes = {}) {
  std::shared_ptr<ReplayedKernel> kernel;
  auto answer = testing::run_sealed(message, bytes, &kernel);
  if (answer) return "accepted";
  EXPECT_EQ(answer.error().report_kind, kNotReplayable);
  return kernel->refusal();
}

TEST(HostileCaptureWorker, AGoodPlanIsPlayed) {
  const auto packet = graph_packet(testing::sample_graph(), testing::sample_data());
  std::shared_ptr<ReplayedKernel> kernel;
  auto answer =
      testing::run_sealed({{"ok", true}, {"replayed", true}, {"bytes", packet.size()}}, packet, &kernel);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_THAT(kernel->launched(), ::testing::ElementsAre("_Z4rowsPKfPfi"));
  EXPECT_THAT(kernel->refusal(), "");
}

TEST(HostileCaptureWorker, AnswersOfAnotherTypeAreRefusedWithAReason) {
  const auto packet = graph_packet(testing::sample_graph(), testing::sample_data());
  for (const Json& replayed : {Json("yes"), Json(1), Json(nullptr), Json::array(), Json(false)})
    EXPECT_EQ(refusal({{"ok", true}, {"replayed", replayed}, {"bytes", packet.size()}}, packet),
              "the capture worker gave no plan")
        << replayed;
  EXPECT_EQ(refusal({{"ok", true}, {"replayed", false}, {"because", 7}}), "the capture worker gave no plan");
  EXPECT_EQ(refusal({{"ok", true}, {"replayed", false}, {"because", "it uses textures"}}),
            "it uses textures");
  for (const Json& bytes : {Json(nullptr), Json("9"), Json(-1), Json(1e30), Json(3), Json(~0ull)})
    EXPECT_THAT(refusal({{"ok", true}, {"replayed", true}, {"bytes", bytes}}, packet),
                HasSubstr("cannot be read"))
        << bytes;
}

TEST(HostileCaptureWorker, APlanThatIsNotThereOrCutShortIsRefused) {
  const auto packet = graph_packet(testing::sample_graph(), testing::sample_data());
  EXPECT_THAT(refusal({{"ok", true}, {"replayed", true}, {"bytes", packet.size()}}),
              HasSubstr("it sent none"));
  EXPECT_THAT(refusal({{"ok", true}, {"replayed", true}, {"bytes", packet.size() + 1}}, packet),
              HasSubstr("shorter than it says"));
  Json wild = testing::sample_graph();
  wild["steady"][3]["dst"]["arena"] = testing::kArena;
  const auto outside = graph_packet(wild, testing::sample_data());
  EXPECT_EQ(refusal({{"ok", true}, {"replayed", true}, {"bytes", outside.size()}}, outside),
            "the capture worker's plan is not valid: steady[3].dst: leaves the tensors");
}

TEST(SharedMemory, ACandidateCannotCutTheJudgesArenaShort) {
  MemfdArena arena;
  auto fd = arena.resize(8192);
  ASSERT_TRUE(fd) << fd.error().what;
  EXPECT_EQ(::ftruncate(*fd, 0), -1);
  EXPECT_EQ(errno, EPERM);
  EXPECT_EQ(::ftruncate(*fd, 1 << 20), -1) << "nor fill the machine's memory through it";
  EXPECT_EQ(::fcntl(*fd, F_ADD_SEALS, F_SEAL_WRITE), -1) << "nor make it read-only";
  std::vector<std::byte> image(8192, std::byte{3}), back(8192);
  ASSERT_TRUE(arena.load(image));
  ASSERT_TRUE(arena.fetch(back));
  EXPECT_EQ(back, image);
}

}  // namespace
}  // namespace capstone
