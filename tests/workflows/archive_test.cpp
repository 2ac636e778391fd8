// An archive that cannot be read and one that is refused are different errors.
#include "harness/project/archive/archive.h"

#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

TEST(UnpackError, TellsRefusedFromUnreadable) {
  const ScratchFolder place(fs::path(testing::TempDir()) / "unpack");
  ASSERT_TRUE(make_folders(place.path()));
  ASSERT_TRUE(write_file_atomic(place.path() / "noise.tar.gz", std::string(4096, 'x')));
  auto noise = try_unpack_archive(place.path() / "noise.tar.gz", place.path() / "a");
  ASSERT_FALSE(noise);
  EXPECT_EQ(noise.error().kind, UnpackError::Kind::kUnreadable);

  const std::string packed = pack_archive({{"human/../../escaped.txt", "x"}}, Packing::kTar, 0).value();
  ASSERT_TRUE(write_file_atomic(place.path() / "climbs.tar", packed));
  auto climbs = try_unpack_archive(place.path() / "climbs.tar", place.path() / "b");
  ASSERT_FALSE(climbs);
  EXPECT_EQ(climbs.error().kind, UnpackError::Kind::kRefused);
  EXPECT_FALSE(fs::exists(place.path() / "b"));
}

}  // namespace
}  // namespace capstone::workflows::test
