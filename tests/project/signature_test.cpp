// Who vouches for a record: the key of the machine that judged, and what happens to a record that is changed.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "harness/base/files.h"
#include "harness/base/text.h"
#include "harness/project/ledger/judge_key.h"
#include "tests/project/samples.h"

namespace capstone {
namespace {

using namespace test;

TEST(JudgeKey, IsMadeOnceAndOnlyItsOwnerReadsIt) {
  Scratch scratch;
  const auto first = JudgeKey::of(scratch / "state/capstone");
  ASSERT_TRUE(first) << render(first.error());
  EXPECT_TRUE(is_public_key(first->public_key())) << first->public_key();
  EXPECT_EQ(JudgeKey::of(scratch / "state/capstone")->public_key(), first->public_key());
  EXPECT_NE(JudgeKey::of(scratch / "other")->public_key(), first->public_key());
  struct stat info {};
  ASSERT_EQ(::stat((scratch / "state/capstone/judge-key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0600u);
  EXPECT_EQ(slurp(scratch / "state/capstone/judge-key").find(first->public_key()), std::string::npos)
      << "the file holds the secret half";
}

TEST(JudgeKey, ProcessesThatStartTogetherHaveOneKey) {
  Scratch scratch;
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i)
    children.push_back(in_other_process([&, i] {
      const auto key = JudgeKey::of(scratch / "state");
      if (!key) return 1;
      put(scratch / ("seen-" + std::to_string(i)), key->public_key());
      return 0;
    }));
  for (pid_t child : children) EXPECT_EQ(exit_code_of(child), 0);
  const std::string key = JudgeKey::of(scratch / "state")->public_key();
  for (int i = 0; i < 6; ++i) EXPECT_EQ(slurp(scratch / ("seen-" + std::to_string(i))), key);
}

// A new key in its place would be a machine that no class knows.
TEST(JudgeKey, AFileThatHoldsNoKeyIsAnErrorAndStays) {
  Scratch scratch;
  put(scratch / "judge-key", "not a key\n");
  const auto key = JudgeKey::of(scratch.path());
  ASSERT_FALSE(key);
  EXPECT_EQ(key.error().code, ExitCode::kEnvironment);
  EXPECT_EQ(slurp(scratch / "judge-key"), "not a key\n");
}

TEST(JudgeKey, SignsWhatOnlyItsPublicHalfVerifies) {
  Scratch scratch;
  const JudgeKey key = JudgeKey::of(scratch / "a").value(), other = JudgeKey::of(scratch / "b").value();
  const std::string signature = key.sign("a record").value();
  EXPECT_TRUE(is_signed_by(key.public_key(), signature, "a record"));
  EXPECT_FALSE(is_signed_by(key.public_key(), signature, "a Record"));
  EXPECT_FALSE(is_signed_by(other.public_key(), signature, "a record"));
  EXPECT_FALSE(is_signed_by(key.public_key(), std::string(128, '0'), "a record"));
  EXPECT_FALSE(is_signed_by(key.public_key(), "", "a record"));
  EXPECT_FALSE(is_signed_by("", signature, "a record"));
}

// RFC 8032, section 7.1, test 1: the same numbers on every machine.
TEST(JudgeKey, AgreesWithTheStandard) {
  Scratch scratch;
  put(scratch / "judge-key", "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60\n");
  const JudgeKey key = JudgeKey::of(scratch.path()).value();
  EXPECT_EQ(key.public_key(), "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
  EXPECT_EQ(key.sign("").value(),
            "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
            "d25bf5f0595bbe24655141438e7a100b");
}

class Signed : public ::testing::Test {
 protected:
  Scratch scratch;
  const fs::path ledger = scratch / "ledger.jsonl", sources = scratch / "sources";
  const JudgeKey key = JudgeKey::of(scratch / "state").value();

  void measure(const std::string& version, const JudgeKey* signer) {
    ASSERT_TRUE(keep_source(sources, "source of " + version));
    ASSERT_TRUE(append_record(ledger, "measurement", measurement(version), kLaptop, signer));
  }
  // The records as JSON, changed by `change`, and chained again as a forger does it.
  template <class Change>
  void forge(Change change) {
    std::vector<Json> records;
    for (const std::string& line : split(slurp(ledger), '\n'))
      if (!line.empty()) records.push_back(Json::parse(line));
    change(records);
    std::string text, previous;
    std::int64_t seq = 0;
    for (Json& record : records) {
      record["seq"] = ++seq;
      record["previous"] = previous;
      previous = sha256_hex(record.dump());
      text += record.dump() + "\n";
    }
    put(ledger, text);
  }
  std::vector<std::string> findings() const { return verify_ledger(ledger, sources).value(); }
};

TEST_F(Signed, ARecordNamesTheMachineThatVouchesForIt) {
  measure("v1", &key);
  measure("v2", nullptr);
  measure("v3", &key);
  EXPECT_TRUE(findings().empty()) << findings().front();
  const auto vouchers = read_ledger(ledger)->vouchers();
  ASSERT_EQ(vouchers.size(), 2u);
  EXPECT_EQ(vouchers[0].key, key.public_key());
  EXPECT_EQ(vouchers[0].measurements, 2);
  EXPECT_EQ(vouchers[1].key, "");
  const std::string brief = key.public_key().substr(0, 16);
  EXPECT_EQ(text_of(vouchers, {{key.public_key(), "gpu-lab"}}),
            "2 signed by gpu-lab (" + brief + "), 1 by the student's own word");
  EXPECT_EQ(text_of(vouchers, {}),
            "2 signed by an unknown machine (" + brief + "), 1 by the student's own word");
}

TEST_F(Signed, WhateverOfARecordIsChangedItsSignatureDoesNotFit) {
  measure("v1", &key);
  const std::string honest = slurp(ledger);
  const Json body = Json::parse(honest)["body"];
  std::vector<Json::json_pointer> places{Json::json_pointer("/time"), Json::json_pointer("/tool"),
                                         Json::json_pointer("/machine")};
  for (const auto& [name, value] : body.items())
    if (value.is_string()) places.push_back(Json::json_pointer("/body") / name);
  ASSERT_GT(places.size(), 10u);
  for (const auto& place : places) {
    put(ledger, honest);
    forge([&](std::vector<Json>& records) {
      const bool word = place.to_string().find("gate") != std::string::npos;
      const bool choice = place.to_string() == "/body/backend" || place.to_string() == "/body/execution";
      records[0].at(place) = word     ? Json(place.to_string() == "/body/gate_one" ? "wrong" : "faster")
                             : choice ? Json(place.to_string() == "/body/backend" ? "emulated" : "replayed")
                                      : Json(records[0].at(place).get<std::string>() + "f");
    });
    const auto found = findings();
    EXPECT_TRUE(std::any_of(found.begin(), found.end(),
                            [](const std::string& f) {
                              return f.starts_with("line 1: its signature (key ") &&
                                     f.ends_with("does not fit: the record was changed after it was signed");
                            }))
        << place.to_string() << ": " << join(found, " / ");
    EXPECT_EQ(read_ledger(ledger)->vouchers().at(0).key, "") << "and no machine vouches for it";
  }
}

TEST_F(Signed, AForgedSpeedupIsFoundAlthoughTheChainIsWhole) {
  for (const char* version : {"v1", "v2", "v3"}) measure(version, &key);
  forge([](std::vector<Json>& records) { records[1]["body"]["measured"]["speedup"]["point"] = 9.9; });
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 2: its signature")) << findings()[0];
}

TEST_F(Signed, AnothersSignatureFitsOnlyItsOwnRecord) {
  measure("v1", &key);
  measure("v2", nullptr);
  forge([](std::vector<Json>& records) { records[1]["signature"] = records[0]["signature"]; });
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_TRUE(findings()[0].starts_with("line 2: its signature")) << findings()[0];
}

TEST_F(Signed, OneJudgementRecordedTwiceIsFound) {
  measure("v1", &key);
  forge([](std::vector<Json>& records) { records.push_back(records[0]); });
  ASSERT_EQ(findings().size(), 1u);
  EXPECT_EQ(findings()[0], "line 2: the same signed judgement as on line 1");
}

// Without a signature, or with an unknown one, a record is believed as much as before there were any.
TEST_F(Signed, WithoutItsSignatureARecordIsTheStudentsOwnWordAndNoDamage) {
  measure("v1", &key);
  forge([](std::vector<Json>& records) { records[0].erase("signature"); });
  EXPECT_TRUE(findings().empty()) << findings().front();
  EXPECT_EQ(read_ledger(ledger)->vouchers().at(0).key, "");
}

TEST_F(Signed, TheSignatureComesAlongWhenARecordIsImported) {
  measure("v1", &key);
  const fs::path home = scratch / "home/ledger.jsonl";
  ASSERT_TRUE(append_record(home, "init", {{"problem_id", "twice"}}, kCluster));
  ASSERT_EQ(import_records(home, ledger, {"twice", ""}).value(), 1);
  const auto view = read_ledger(home);
  EXPECT_TRUE(view->damage.empty()) << view->damage.front();
  EXPECT_EQ(view->vouchers().at(0).key, key.public_key());
}

TEST_F(Signed, AForgedResultIsNotImported) {
  measure("v1", &key);
  forge([](std::vector<Json>& records) { records[0]["body"]["reason"] = "another"; });
  const auto added = import_records(scratch / "home/ledger.jsonl", ledger, {"twice", ""});
  ASSERT_FALSE(added);
  EXPECT_NE(added.error().what.find("its signature"), std::string::npos) << added.error().what;
}

// What a compiler wrote may be any bytes: the ledger replaces what is not UTF-8, and the signature is of what
// the line holds.
TEST_F(Signed, BytesThatAreNotUtf8AreSignedAsTheyAreWritten) {
  Measurement m = measurement("v1");
  m.build.log = "caf\xE9";
  m.seconds = 1.0 / 3;
  ASSERT_TRUE(keep_source(sources, "source of v1"));
  ASSERT_TRUE(append_record(ledger, "measurement", m, kLaptop, &key));
  EXPECT_TRUE(findings().empty()) << findings().front();
}

}  // namespace
}  // namespace capstone
