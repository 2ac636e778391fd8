// What travels to another machine and back, without one.
#include "harness/workflows/remote.h"

#include "harness/base/digest.h"
#include "harness/workflows/pending_versions.h"
#include "tests/workflows/fixture.h"

namespace capstone::workflows::test {
namespace {

TEST(Destination, Parses) {
  auto ssh = parse_destination("ssh:ada@lab");
  ASSERT_TRUE(ssh);
  EXPECT_EQ(ssh->kind, Destination::Kind::kSsh);
  EXPECT_EQ(ssh->place, "ada@lab");
  EXPECT_EQ(parse_destination("ssh://ada@lab:2222")->place, "ssh://ada@lab:2222");
  EXPECT_EQ(parse_destination("slurm")->kind, Destination::Kind::kSlurm);
  EXPECT_EQ(parse_destination("slurm:gpu")->place, "gpu");
  for (const char* bad : {"lab", "ssh:", "ssh:-oProxyCommand=x", "ssh:two words", "slurm:a'b"})
    EXPECT_FALSE(parse_destination(bad)) << bad;
}

TEST(RemoteScript, QuotesEveryWord) {
  Destination destination{Destination::Kind::kSsh, "lab", "~/it's here/capstone", {}};
  const RemoteTask task{"0123456789abcdef", {}, {"--python", "a b; rm -rf '/'"}};
  const std::string script = remote_script(destination, task, "bytes");
  EXPECT_NE(script.find(R"('a b; rm -rf '\''/'\''')"), std::string::npos);
  EXPECT_NE(script.find(R"(program='~/it'\''s here/capstone')"), std::string::npos);
  EXPECT_NE(script.find("capstone/remote/0123456789abcdef"), std::string::npos);
}

TEST(RemoteResult, IsVerified) {
  const std::string ledger = "{\"seq\":1}\n";
  const std::string head = "motd\n\ncapstone-result " + sha256_hex(ledger) + "\n";
  EXPECT_EQ(result_in(head + ledger, "lab").value(), ledger);
  EXPECT_EQ(result_in(head + ledger.substr(0, 4), "lab").error().what, "the result from lab is incomplete");
  EXPECT_EQ(result_in("motd\n", "lab").error().what, "no result came from lab");
}

TEST(LastWords, AreTheError) {
  EXPECT_EQ(last_words("building\nerror: no nvcc\n  hint: install it\n"), "no nvcc\n  hint: install it");
  EXPECT_EQ(last_words("one\ntwo\n"), "two");
}

class PendingVersions : public ProjectTest {};

TEST_F(PendingVersions, CountAsVersions) {
  const Project project = project_here(workspace_).value();
  LedgerView ledger = read_ledger(project.ledger()).value();
  std::vector<CandidateVersion> candidates{{"human", project.human_kernel(), {}, {}, {}}};
  const fs::path task = project.root / ".capstone" / "remote" / "task";
  ASSERT_TRUE(make_folders(task));
  ASSERT_TRUE(name_versions(task / "versions.json", ledger, candidates));
  EXPECT_EQ(candidates[0].version, "v1");

  write_kernel(wrong_kernel());
  std::vector<CandidateVersion> next{{"human", project.human_kernel(), {}, {}, {}}};
  add_pending_versions(project, ledger);
  ASSERT_TRUE(name_versions(place_.path() / "named", ledger, next));
  EXPECT_EQ(next[0].version, "v2");
}

}  // namespace
}  // namespace capstone::workflows::test
