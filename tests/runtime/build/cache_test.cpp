#include "harness/runtime/build/cache.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/base/scratch.h"

namespace capstone {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class Cache : public ::testing::Test {
 protected:
  /// A build of 1,000 bytes that was used some time ago.
  fs::path build(const std::string& name, std::chrono::hours ago) {
    const fs::path entry = scratch_ / name;
    const fs::path file = entry.extension().empty() ? entry / "worker" : entry;
    test::put(file, std::string(1000, 'x'));
    fs::last_write_time(entry, fs::file_time_type::clock::now() - ago);
    return entry;
  }
  int prune(std::uintmax_t bytes) { return prune_cache(scratch_.path(), {.bytes = bytes, .rest = 0h}); }
  test::Scratch scratch_;
};

TEST_F(Cache, WhatWasNotUsedForAMonthGoes) {
  const fs::path old = build("emulated/old", 31 * 24h), object = build("emulated/objects/a.o", 31 * 24h),
                 oracle = build("oracles/a.so", 31 * 24h), fresh = build("cuda/fresh", 29 * 24h),
                 checked = build("nvcc/old", 31 * 24h), left = build("emulated/tmp-1-2", 40 * 24h);
  EXPECT_EQ(prune(1 << 20), 5);
  for (const fs::path& entry : {old, object, oracle, checked, left}) EXPECT_FALSE(fs::exists(entry)) << entry;
  EXPECT_TRUE(fs::exists(fresh / "worker"));
}

TEST_F(Cache, OverTheLimitTheLeastRecentlyUsedGoFirst) {
  const fs::path third = build("emulated/third", 50h), first = build("cuda/first", 70h),
                 second = build("oracles/second.so", 60h), fourth = build("emulated/objects/fourth.o", 40h);
  EXPECT_EQ(prune(2500), 2);
  EXPECT_FALSE(fs::exists(first));
  EXPECT_FALSE(fs::exists(second));
  EXPECT_TRUE(fs::exists(third));
  EXPECT_TRUE(fs::exists(fourth));
}

TEST_F(Cache, WhatWasUsedTodayStays) {
  const fs::path entry = build("emulated/entry", 100h);
  EXPECT_TRUE(use_cached(entry));
  EXPECT_FALSE(use_cached(scratch_ / "emulated/none"));
  EXPECT_EQ(prune(0), 0);
  EXPECT_TRUE(fs::exists(entry / "worker"));
}

TEST_F(Cache, OnlyBuildsGo) {
  for (const char* name : {"cuda-headers/cuda.h", "state/machine", "emulated/objects/keep.o"})
    test::put(scratch_ / name, "keep");
  build("python/candidate", 100 * 24h);
  EXPECT_EQ(prune(0), 0);
  for (const char* name : {"cuda-headers/cuda.h", "state/machine", "python/candidate/worker"})
    EXPECT_TRUE(fs::exists(scratch_ / name)) << name;
}

TEST_F(Cache, ItIsPrunedOnceADay) {
  build("emulated/first", 31 * 24h);
  EXPECT_EQ(prune_cache(scratch_.path()), 1);
  build("emulated/second", 31 * 24h);
  EXPECT_EQ(prune_cache(scratch_.path()), 0);
  fs::last_write_time(scratch_ / "pruned", fs::file_time_type::clock::now() - 25h);
  EXPECT_EQ(prune_cache(scratch_.path()), 1);
}

TEST_F(Cache, ManyMayPruneAndUseItAtOnce) {
  for (int i = 0; i < 200; ++i) build("emulated/" + std::to_string(i), 31 * 24h);
  const fs::path used = build("emulated/used", 0h);
  std::vector<int> removed(4);
  bool found = true;
  {
    std::vector<std::jthread> threads;
    for (int& count : removed) threads.emplace_back([&count, this] { count = prune(1 << 20); });
    for (int i = 0; i < 1000; ++i) found = found && use_cached(used) && fs::exists(used / "worker");
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(removed[0] + removed[1] + removed[2] + removed[3], 200) << "each goes once";
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch_ / "emulated"), fs::directory_iterator{}), 1)
      << "and nothing is left of it";
}

}  // namespace
}  // namespace capstone
