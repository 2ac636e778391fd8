#include "harness/course/submissions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <set>

#include "harness/base/files.h"
#include "harness/project/archive/archive.h"

namespace capstone {
namespace {

class Submissions : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "cohort-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root = fs::canonical(pattern);
    fs::create_directories(root / "in");
  }
  void TearDown() override { fs::remove_all(root); }

  void put(const fs::path& path, const std::string& text = "x") {
    fs::create_directories((root / "in" / path).parent_path());
    std::ofstream(root / "in" / path, std::ios::binary) << text;
  }
  FoundSubmissions find(const fs::path& where = "in") {
    auto found = find_submissions(root / where, root / "out", root / "out");
    EXPECT_TRUE(found) << found.error().what;
    return found ? *found : FoundSubmissions{};
  }
  fs::path root;
};

TEST_F(Submissions, FileNamesOfCanvasMoodleAndGradescopeTellWhoseTheyAre) {
  Origin canvas = origin_of("lovelaceada_LATE_1815_99_my_project-2.tar.gz");
  EXPECT_EQ(canvas.platform, "Canvas");
  EXPECT_EQ(canvas.person, "lovelaceada");
  EXPECT_EQ(canvas.id, "1815");
  EXPECT_TRUE(canvas.late);
  EXPECT_FALSE(origin_of("lovelaceada_1815_99_project.zip").late);
  Origin moodle = origin_of("Ada Lovelace_1815_assignsubmission_file_");
  EXPECT_EQ(moodle.platform, "Moodle");
  EXPECT_EQ(moodle.person, "Ada Lovelace");
  EXPECT_EQ(origin_of("Ada Lovelace_1815_assignsubmission_file_p.zip").id, "1815");
  EXPECT_EQ(origin_of("Jörg Müller_1815_assignsubmission_file").person, "Jörg Müller")
      << "a folder of newer versions of Moodle";
  EXPECT_EQ(origin_of("submission_42").platform, "Gradescope");
  for (const char* own : {"ada", "ada_lovelace-softmax.tar.gz", "v2_final.zip"})
    EXPECT_EQ(origin_of(own).platform, "") << own;
}

TEST_F(Submissions, FoldersAndArchivesAreFoundTheRestIsListed) {
  put("ada/capstone.yaml");
  put("bob.tar.gz");
  put("eve.zip");
  put("notes.txt");
  put("roster.csv");
  put(".hidden/capstone.yaml");
  auto found = find();
  ASSERT_EQ(found.submissions.size(), 3u);
  EXPECT_EQ(found.submissions[0].name, "ada");
  EXPECT_EQ(found.submissions[1].name, "bob");
  EXPECT_EQ(found.submissions[1].shown, "bob.tar.gz");
  EXPECT_EQ(found.ignored, std::vector<std::string>{"notes.txt"});
}

TEST_F(Submissions, ThePlacesOfTheOutputAreNoSubmission) {
  put("ada/capstone.yaml");
  put("graded/x");
  auto found = find_submissions(root / "in", root / "in" / "graded", root / "in" / "graded");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->submissions.size(), 1u);
}

TEST_F(Submissions, NamesAreUniqueAndFitForAFile) {
  put("ada/capstone.yaml");
  put("ada.zip");
  put("-rf; x/capstone.yaml");
  put(std::string("caf\xE9") + "/capstone.yaml");
  put(std::string(200, 'n') + "/capstone.yaml");
  std::set<std::string> names;
  for (const Submission& s : find().submissions) {
    EXPECT_TRUE(names.insert(s.name).second) << s.name;
    EXPECT_LE(s.name.size(), 84u);
    EXPECT_EQ(s.name.find_first_of("/ ;\n"), std::string::npos) << s.name;
    EXPECT_NE(s.name.front(), '-');
  }
  EXPECT_TRUE(names.contains("ada"));
  EXPECT_TRUE(names.contains("ada~2"));
}

TEST_F(Submissions, AFolderThatMoodleMadeHoldsTheArchive) {
  put("Ada Lovelace_7_assignsubmission_file_/project.tar.gz");
  put("Bob_8_assignsubmission_file_/one.zip");
  put("Bob_8_assignsubmission_file_/two.zip");
  auto found = find();
  ASSERT_EQ(found.submissions.size(), 2u);
  EXPECT_EQ(found.submissions[0].name, "Ada-Lovelace");
  EXPECT_EQ(found.submissions[0].path.filename(), "project.tar.gz");
  EXPECT_TRUE(found.submissions[0].rivals.empty());
  EXPECT_EQ(found.submissions[1].rivals, (std::vector<std::string>{"one.zip", "two.zip"}));
}

TEST_F(Submissions, AProjectOrAnArchiveBelowFoldersIsFound) {
  put("Ada_7_assignsubmission_file/Downloads/my capstone/capstone.yaml");
  put("Ada_7_assignsubmission_file/__MACOSX/my capstone/capstone.yaml");
  put("Bob_8_assignsubmission_file/my work/project.zip");
  put("two/a/capstone.yaml");
  put("two/b/capstone.yaml");
  auto found = find();
  ASSERT_EQ(found.submissions.size(), 3u);
  EXPECT_EQ(project_root(found.submissions[0].path).filename(), "my capstone");
  EXPECT_EQ(found.submissions[1].path.filename(), "project.zip");
  EXPECT_TRUE(project_root(found.submissions[2].path).empty()) << "two projects: a person decides";
  EXPECT_EQ(project_roots(found.submissions[2].path).size(), 2u);
}

TEST_F(Submissions, GradescopesOwnFileNamesThePeople) {
  put("submission_1/capstone.yaml");
  put("submission_2/capstone.yaml");
  put("submission_metadata.yml",
      "submission_1:\n  :submitters:\n  - :name: Ada Lovelace\n    :sid: '1815'\n    :email: "
      "ada@example.org\n  - :name: Bob\n    :sid: '2'\n  :created_at: 2026-03-01 09:30:00\n");
  auto found = find();
  ASSERT_EQ(found.submissions.size(), 2u);
  EXPECT_EQ(found.submissions[0].origin.person, "Ada Lovelace and Bob");
  EXPECT_EQ(found.submissions[0].origin.id, "1815");
  EXPECT_EQ(found.submissions[0].origin.submitted, "2026-03-01 09:30:00");
  EXPECT_EQ(found.submissions[1].name, "submission_2") << "the metadata file does not mention it";
}

TEST_F(Submissions, ABulkArchiveIsUnpackedOnce) {
  auto bytes = pack_archive({{"class/lovelaceada_1_2_p.zip", "a"}, {"class/menabrea_LATE_3_4_p.zip", "b"}},
                            Packing::kTarGz, 0);
  ASSERT_TRUE(bytes);
  ASSERT_TRUE(write_file_atomic(root / "bulk.tar.gz", *bytes));
  auto found = find("bulk.tar.gz");
  ASSERT_EQ(found.submissions.size(), 2u);
  EXPECT_EQ(found.submissions[0].name, "lovelaceada");
  EXPECT_TRUE(found.submissions[1].origin.late);
  fs::file_time_type before = fs::last_write_time(found.submissions[0].path);
  EXPECT_EQ(fs::last_write_time(find("bulk.tar.gz").submissions[0].path), before);
}

TEST_F(Submissions, NothingThereIsAnError) {
  EXPECT_FALSE(find_submissions(root / "in", root / "out", root / "out"));
  EXPECT_FALSE(find_submissions(root / "nowhere", root / "out", root / "out"));
}

TEST_F(Submissions, TheDigestSeesContentsNamesAndLinksAndNoHiddenFolder) {
  put("ada/capstone.yaml", "a");
  put("ada/.git/x");
  auto digest = [&] { return *digest_of_submission(root / "in" / "ada"); };
  std::string first = digest();
  put("ada/.git/x", "changed");
  EXPECT_EQ(digest(), first);
  put("ada/.capstone/ledger.jsonl");
  std::string second = digest();
  EXPECT_NE(second, first);
  fs::rename(root / "in/ada/capstone.yaml", root / "in/ada/capstone.yml");
  std::string third = digest();
  EXPECT_NE(third, second);
  fs::create_symlink("capstone.yml", root / "in/ada/link");
  EXPECT_NE(digest(), third);
}

TEST_F(Submissions, TheProjectMayLieOneFolderDown) {
  put("ada/project/capstone.yaml");
  EXPECT_EQ(project_root(root / "in" / "ada"), root / "in" / "ada" / "project");
  put("ada/another/capstone.yaml");
  EXPECT_EQ(project_root(root / "in" / "ada"), fs::path()) << "two projects: a person must decide";
}

}  // namespace
}  // namespace capstone
