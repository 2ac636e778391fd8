#include "harness/project/archive/privacy.h"

#include <gtest/gtest.h>

#include "tests/cpu_seconds.h"

namespace capstone {
namespace {

// Put together at run time, so that secret scanners do not report this repository.
const std::string kRandom = "a8Zq0Lw93kXv5Rt7Yb2Nc6Md1Pf4Gh";
std::string key(const std::string& prefix, std::size_t length) {
  std::string text = prefix;
  for (std::size_t i = 0; i < length; ++i) text += kRandom[i % kRandom.size()];
  return text;
}

TEST(Secrets, PublishedPrefixesAreFoundAndNeverShown) {
  const std::string upper = "IOSF0DNN7EXAMPL1";
  for (const std::string& secret :
       {key("sk-", 48), key("sk-proj-", 60), key("sk-ant-", 90), "AKIA" + upper, key("ghp_", 36),
        key("github_pat_", 40), key("hf_", 34), key("AIza", 35), key("nvapi-", 60), key("gsk_", 52)}) {
    auto hits = find_secrets("first line\nkey is " + secret + " there\n");
    ASSERT_EQ(hits.size(), 1u) << secret;
    EXPECT_EQ(hits[0].line, 2);
    EXPECT_EQ(hits[0].shown.find(secret), std::string::npos);
    EXPECT_EQ(hits[0].shown, secret.substr(0, 4) + "… (" + std::to_string(secret.size()) + " characters)");
  }
}

TEST(Secrets, PrivateKeys) {
  auto hits = find_secrets("-----BEGIN RSA " + std::string("PRIVATE KEY-----\nMIIE\n"));
  ASSERT_EQ(hits.size(), 1u);
  EXPECT_EQ(hits[0].kind, "private key");
}

TEST(Secrets, AssignmentsOfRandomValues) {
  for (std::string line :
       {"api_key = \"" + kRandom + "\"", "\"api-key\": \"" + kRandom + "\"", "PASSWORD=" + kRandom,
        "os.environ['OPENAI_API_KEY'] = '" + kRandom + "'", "token: " + kRandom})
    EXPECT_EQ(find_secrets(line).size(), 1u) << line;
}

TEST(Secrets, OrdinaryTextIsNone) {
  for (const char* line :
       {"max_tokens = 4096", "the token embedding has 768 columns",
        "api_key = os.environ[\"OPENAI_API_KEY\"]", "password = \"\"",
        "token = blockIdx.x * blockDim.x + threadIdx.x;", "sk-learn-is-a-library-of-python",
        "risk-a8Zq0Lw93kXv5Rt7Yb2Nc6Md", "secret: aaaaaaaaaaaaaaaaaaaaaaaa1",
        "\"source_sha256\": \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
        "-----BEGIN PUBLIC KEY-----"})
    EXPECT_TRUE(find_secrets(line).empty()) << line;
}

TEST(Secrets, LongLinesAreLinear) {
  for (std::string unit : {"sk-", "token", "token=", "sk-a1", "api_key ", "AIza"}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    EXPECT_LT(testing::cpu_seconds([&] { find_secrets(text); }), 20) << unit;
  }
}

std::string masked(const IdentityMask& mask, const std::string& text) {
  int count = 0;
  return mask.apply(text, count);
}

TEST(IdentityMask, HomeUserAndHost) {
  IdentityMask mask({"jdoe42", "/home/jdoe42", "lab7.cs.example.org"}, {"Jane Doe"});
  int count = 0;
  EXPECT_EQ(mask.apply("jdoe42@lab7:/home/jdoe42/capstone$ hostname: lab7.cs.example.org", count),
            "[user]@[host]:~/capstone$ hostname: [host]");
  EXPECT_EQ(count, 4);
}

TEST(IdentityMask, OnlyWholeWords) {
  IdentityMask mask({"ann", "/home/ann", "lab"}, {});
  EXPECT_EQ(masked(mask, "Hannover, annotate, label, /home/anna, ann's lab"),
            "Hannover, annotate, label, /home/anna, [user]'s [host]");
}

TEST(IdentityMask, OrdinaryWordsStay) {
  IdentityMask mask({"user", "/home/user", "gpu"}, {});
  EXPECT_EQ(masked(mask, "the user of a gpu in /home/user/x"), "the user of a gpu in ~/x");
}

TEST(IdentityMask, WhatTheStudentHandsInOnPurposeStays) {
  IdentityMask mask({"s1234567", "/home/s1234567", "lab7"}, {"Anna Example", "s1234567", "anna@example.org"});
  EXPECT_EQ(masked(mask, "s1234567 in /home/s1234567"), "s1234567 in ~");
}

TEST(IdentityMask, RootsHomeAndEmptyNamesAreNoTrouble) {
  EXPECT_EQ(masked(IdentityMask({"", "", ""}, {}), "a / b"), "a / b");
  EXPECT_EQ(masked(IdentityMask({"root", "/", ""}, {}), "a / b root"), "a / b root");
  EXPECT_EQ(masked(IdentityMask({"root", "/root/", ""}, {}), "/root/x /rooted"), "~/x /rooted");
}

TEST(IdentityMask, FindNamesTheLines) {
  IdentityMask mask({"jdoe42", "/home/jdoe42", "lab7"}, {});
  auto hits = mask.find("a\n/home/jdoe42\n\nlab7 lab7\n");
  ASSERT_EQ(hits.size(), 2u);
  EXPECT_EQ(hits[0].line, 2);
  EXPECT_EQ(hits[0].what, "the home folder");
  EXPECT_EQ(hits[1].line, 4);
  EXPECT_EQ(hits[1].what, "the host name");
}

}  // namespace
}  // namespace capstone
