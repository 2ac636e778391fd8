// The judge's side of the sealed tier, and of the memory that it shares with a candidate.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "harness/judge/gate_one.h"
#include "tests/runtime/cuda/hostile_capture_worker.h"

namespace capstone {
namespace {

using ::testing::HasSubstr;

std::string refusal(const Json& message, const std::vector<std::byte>& bytes = {}) {
  std::shared_ptr<SealedKernel> kernel;
  auto answer = testing::run_sealed(message, bytes, &kernel);
  if (answer) return "accepted";
  EXPECT_EQ(answer.error().report_kind, kNotSealed);
  return kernel->refusal();
}

TEST(HostileRecorder, AGoodPlanIsPlayed) {
  const auto packet = plan_packet(testing::sample_plan(), testing::sample_data());
  std::shared_ptr<SealedKernel> kernel;
  auto answer = testing::run_sealed({{"ok", true}, {"sealed", true}, {"bytes", packet.size()}}, packet, &kernel);
  ASSERT_TRUE(answer) << answer.error().what;
  EXPECT_THAT(kernel->launched(), ::testing::ElementsAre("_Z4rowsPKfPfi"));
  EXPECT_THAT(kernel->refusal(), "");
}

TEST(HostileRecorder, AnswersOfAnotherTypeAreRefusedWithAReason) {
  const auto packet = plan_packet(testing::sample_plan(), testing::sample_data());
  for (const Json& sealed : {Json("yes"), Json(1), Json(nullptr), Json::array(), Json(false)})
    EXPECT_EQ(refusal({{"ok", true}, {"sealed", sealed}, {"bytes", packet.size()}}, packet), "the recorder gave no plan") << sealed;
  EXPECT_EQ(refusal({{"ok", true}, {"sealed", false}, {"because", 7}}), "the recorder gave no plan");
  EXPECT_EQ(refusal({{"ok", true}, {"sealed", false}, {"because", "it uses textures"}}), "it uses textures");
  for (const Json& bytes : {Json(nullptr), Json("9"), Json(-1), Json(1e30), Json(3), Json(~0ull)})
    EXPECT_THAT(refusal({{"ok", true}, {"sealed", true}, {"bytes", bytes}}, packet), HasSubstr("cannot be read")) << bytes;
}

TEST(HostileRecorder, APlanThatIsNotThereOrCutShortIsRefused) {
  const auto packet = plan_packet(testing::sample_plan(), testing::sample_data());
  EXPECT_THAT(refusal({{"ok", true}, {"sealed", true}, {"bytes", packet.size()}}), HasSubstr("it sent none"));
  EXPECT_THAT(refusal({{"ok", true}, {"sealed", true}, {"bytes", packet.size() + 1}}, packet), HasSubstr("shorter than it says"));
  Json wild = testing::sample_plan();
  wild["steady"][3]["dst"]["arena"] = testing::kArena;
  const auto outside = plan_packet(wild, testing::sample_data());
  EXPECT_EQ(refusal({{"ok", true}, {"sealed", true}, {"bytes", outside.size()}}, outside),
            "the recorder's plan is not valid: steady[3].dst: leaves the tensors");
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
