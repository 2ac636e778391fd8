// `capstone book`: a page for each rung.
#include "harness/base/files.h"
#include "tests/cli/command.h"

namespace capstone::cli_test {
namespace {

using Book = CliTest;

TEST_F(Book, HasAPageForEachRungOfEachLadder) {
  const Outcome written = capstone({"book", "book"});
  ASSERT_EQ(written.code, 0) << written;
  const std::string index = *read_file(home_ / "book" / "index.html");
  int rungs = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(CAPSTONE_SOURCE_DIR) / "reference_kernels")) {
    const std::string session =
        fs::relative(entry.path(), fs::path(CAPSTONE_SOURCE_DIR) / "reference_kernels").begin()->string();
    if (entry.path().extension() != ".cu" || session == "labs") continue;
    ++rungs;
    const std::string file =
        entry.path().parent_path().filename().string() + "." + entry.path().stem().string() + ".html";
    EXPECT_TRUE(fs::exists(home_ / "book" / file)) << file;
    EXPECT_TRUE(says(index, "href=\"" + file + "\"")) << file;
  }
  EXPECT_GT(rungs, 200);
}

TEST_F(Book, RungShowsItsHeaderItsTimesAndWhatIsNew) {
  ASSERT_EQ(capstone({"book", "book", "--problem", "sgemm"}).code, 0);
  const std::string page = *read_file(home_ / "book" / "sgemm.02_coalesced.html");
  for (const char* text :
       {"<dt>Changed</dt>", "<dt>Prediction</dt>", "NVIDIA H200", "class=\"fresh\"", "class=\"kept\"",
        "under the roof of arithmetic", "class=\"own\"", "Difference from the rung below"})
    EXPECT_TRUE(says(page, text)) << text;
  EXPECT_FALSE(says(page, "<script"));
  EXPECT_FALSE(says(page.substr(page.find("The code"), page.find("<details") - page.find("The code")),
                    "// Prediction"))
      << "the header stands above, once";
  EXPECT_TRUE(says(*read_file(home_ / "book" / "sgemm.01_naive.html"), "rung 1 of "));
}

TEST_F(Book, CodeInAHeaderIsCodeOnThePage) {
  ASSERT_EQ(capstone({"book", "book", "--problem", "sgemm"}).code, 0);
  for (const char* name : {"sgemm.10_autotuned.html", "sgemm.html"}) {
    const std::string whole = *read_file(home_ / "book" / name);
    const std::string page = whole.substr(0, whole.find("<h2>The code"));
    EXPECT_TRUE(says(page, "<code>Tuned</code> is the best")) << name;
    EXPECT_FALSE(says(page, "`Tuned`")) << name;
  }
}

TEST_F(Book, HasThePythonRungsOfALadderOfLanguages) {
  ASSERT_EQ(capstone({"book", "book", "--problem", "gemm_languages"}).code, 0);
  const std::string index = *read_file(home_ / "book" / "index.html");
  for (const char* rung : {"01_triton", "03_tilelang", "12_stream_k"})
    EXPECT_TRUE(says(index, std::string("href=\"gemm_languages.") + rung + ".html\"")) << rung;
  const std::string page = *read_file(home_ / "book" / "gemm_languages.01_triton.html");
  // The share of the library in the table of the record: the last column of the rung's first row.
  const std::string table =
      slurp(CAPSTONE_SOURCE_DIR "/reference_kernels/W3_languages/gemm_languages/README.md");
  const std::size_t row = table.find("\n| 01_triton |"), end = table.find(" |\n", row);
  const std::string share = table.substr(table.rfind("| ", end) + 2, end - table.rfind("| ", end) - 2);
  ASSERT_TRUE(share.ends_with(" %")) << share;
  for (const std::string& text : {std::string("in several languages"), std::string("<dt>Changed</dt>"),
                                  std::string("NVIDIA H100"), share, std::string("@triton.jit")})
    EXPECT_TRUE(says(page, text)) << text;
  EXPECT_FALSE(says(page, "class=\"fresh\"")) << "another language is no small step";
  EXPECT_FALSE(says(page, "Marked lines"));
  EXPECT_FALSE(says(page, "# Prediction")) << "the header stands above, once";
}

TEST_F(Book, CountsEachLineOnRequest) {
  const Outcome written = capstone({"book", "book", "--problem", "vector_add", "--counts"});
  ASSERT_EQ(written.code, 0) << written;
  EXPECT_TRUE(says(*read_file(home_ / "book" / "vector_add.01_one_element.html"), "What each line costs"));
  EXPECT_TRUE(fs::exists(home_ / "book" / "vector_add.01_one_element.counts.html"));
  const std::string rung = slurp(home_ / "book" / "vector_add.01_one_element.html");
  EXPECT_TRUE(says(rung, "global memory</dt><dd>4.0 sectors of 32 bytes per request")) << "profile's answers";
}

TEST_F(Book, NeverWritesOverOtherFiles) {
  fs::create_directories(home_ / "mine");
  ASSERT_TRUE(write_file_atomic(home_ / "mine" / "notes.txt", "keep me"));
  const Outcome refused = capstone({"book", "mine"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(says(refused.err, "the folder holds other files, and no ladder book"));
  EXPECT_EQ(*read_file(home_ / "mine" / "notes.txt"), "keep me");
  const Outcome unknown = capstone({"book", "book", "--problem", "transpos"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(says(unknown.err, "transpose"));
  ASSERT_EQ(capstone({"book", "again", "--problem", "transpose"}).code, 0);
  EXPECT_EQ(capstone({"book", "again", "--problem", "transpose"}).code, 0) << "its own book";
}

}  // namespace
}  // namespace capstone::cli_test
