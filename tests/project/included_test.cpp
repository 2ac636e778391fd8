#include "harness/project/included.h"

#include <gtest/gtest.h>

#include "harness/base/digest.h"
#include "harness/base/files.h"
#include "harness/base/scratch_folder.h"

namespace capstone {
namespace {

class Included : public ::testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    ASSERT_TRUE(make_folders((place_.path() / path).parent_path()));
    ASSERT_TRUE(write_file_atomic(place_.path() / path, text));
  }
  std::vector<std::string> of(const std::string& path) {
    auto files = included_files(place_.path(), place_.path() / path);
    EXPECT_TRUE(files) << render(files.error());
    std::vector<std::string> paths;
    for (const IncludedFile& file : *files) paths.push_back(file.path);
    return paths;
  }
  const ScratchFolder place_{fs::path(testing::TempDir()) / "included"};
};

using Paths = std::vector<std::string>;

TEST_F(Included, FilesAreFollowedThroughFiles) {
  write("human/kernel.cu", "#include <cuda_runtime.h>\n#include \"rows.cuh\"\n# include <parts/sum.cuh>\n");
  write("human/rows.cuh", "#pragma once\n#include \"kernel.cu\"\n");
  write("human/parts/sum.cuh", "#include \"../last.inc\"\n");
  write("human/last.inc", "1\n");
  write("human/notes.md", "nothing includes me\n");
  EXPECT_EQ(of("human/kernel.cu"), (Paths{"human/last.inc", "human/parts/sum.cuh", "human/rows.cuh"}));
  const auto files = included_files(place_.path(), place_.path() / "human/kernel.cu");
  EXPECT_EQ(files->front().sha256, sha256_hex("1\n"));
}

TEST_F(Included, WhatAnAssemblerOrALongLineNamesCounts) {
  write("human/kernel.cu", "asm(\".incbin \\\"\" \"table.bin\" \"\\\"\");\n#include \\\n  \"far.cuh\"\n");
  write("human/table.bin", std::string("\0\1", 2));
  write("human/far.cuh", "");
  EXPECT_EQ(of("human/kernel.cu"), (Paths{"human/far.cuh", "human/table.bin"}));
}

TEST_F(Included, WhereAMacroMakesTheNameEveryNeighbourCounts) {
  write("human/kernel.cu", "#define S(x) #x\n#define F(x) S(x)\n#include F(hidden.cuh)\n");
  write("human/hidden.cuh", "");
  write("human/notes.md", "");
  EXPECT_EQ(of("human/kernel.cu"), (Paths{"human/hidden.cuh", "human/notes.md"}));
}

TEST_F(Included, NothingOutsideOfTheProjectCounts) {
  write("project/human/kernel.cu", "#include \"../../outside.cuh\"\n#include \"/etc/hostname\"\n");
  write("outside.cuh", "");
  auto files = included_files(place_.path() / "project", place_.path() / "project/human/kernel.cu");
  ASSERT_TRUE(files);
  EXPECT_TRUE(files->empty());
}

TEST_F(Included, ModulesNextToAPythonKernel) {
  write("human/kernel.py", "import torch\nfrom tricks import fast\n");
  write("human/tricks.py", "import more\n");
  write("human/more.py", "");
  write("human/old.py", "");
  EXPECT_EQ(of("human/kernel.py"), (Paths{"human/more.py", "human/tricks.py"}));
}

}  // namespace
}  // namespace capstone
