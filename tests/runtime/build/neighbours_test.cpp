// What a cached CUDA build depends on besides its source.
#include "harness/runtime/build/neighbours.h"

#include <gtest/gtest.h>

#include "tests/base/scratch.h"

namespace capstone {
namespace {

TEST(Neighbours, AnyFileThatMayBeIncludedChangesTheDigest) {
  test::Scratch place;
  test::put(place / "kernel.cu", "#include \"tile.inc\"");
  test::put(place / "tile.inc", "1");
  const auto digest = [&] { return digest_of_neighbours(place / "kernel.cu"); };
  std::string last = digest();
  EXPECT_EQ(digest(), last) << "the same files, the same digest";
  for (const char* name : {"tile.inc", "other.cu", "common.cuh", "table", "lib/deep/part.h"})
    for (const char* content : {"2", "3"}) {
      test::put(place / name, content);
      EXPECT_NE(digest(), last) << name;
      last = digest();
    }
  std::filesystem::rename(place / "table", place / "tables");
  EXPECT_NE(digest(), last) << "a name";
}

TEST(Neighbours, ALargeFileCountsByItsSize) {
  test::Scratch place;
  test::put(place / "kernel.cu", "");
  test::put(place / "weights.bin", std::string(5u << 20, 'x'));
  const std::string before = digest_of_neighbours(place / "kernel.cu");
  EXPECT_EQ(digest_of_neighbours(place / "kernel.cu"), before);
  test::put(place / "weights.bin", std::string((5u << 20) + 1, 'x'));
  EXPECT_NE(digest_of_neighbours(place / "kernel.cu"), before);
}

TEST(Neighbours, NothingIsCachedInAFolderThatIsTooFullToLookThrough) {
  test::Scratch place;
  test::put(place / "kernel.cu", "");
  for (int i = 0; i < 1030; ++i) std::filesystem::create_directory(place / std::to_string(i));
  EXPECT_NE(digest_of_neighbours(place / "kernel.cu"), digest_of_neighbours(place / "kernel.cu"));
}

}  // namespace
}  // namespace capstone
