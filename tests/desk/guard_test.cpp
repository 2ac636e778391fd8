#include "harness/desk/guard.h"

#include <gtest/gtest.h>

namespace capstone::desk {
namespace {

TEST(Guard, OnlyOurOwnHostNamesAreServed) {
  const std::vector<std::string> names{"127.0.0.1", "localhost", "marks.example.org"};
  for (const char* host : {"127.0.0.1:8040", "localhost:8040", "marks.example.org"})
    EXPECT_TRUE(is_our_host(host, names, 8040)) << host;
  for (const char* host : {"evil.example", "127.0.0.1:80", "localhost.evil.example:8040", ""})
    EXPECT_FALSE(is_our_host(host, names, 8040)) << host;
}

TEST(Guard, AFormOfAnotherSiteHasAnotherOrigin) {
  EXPECT_TRUE(is_same_origin("", "localhost:8040"));
  EXPECT_TRUE(is_same_origin("http://localhost:8040", "localhost:8040"));
  EXPECT_TRUE(is_same_origin("https://marks.example.org", "marks.example.org"));
  EXPECT_FALSE(is_same_origin("http://evil.example", "localhost:8040"));
  EXPECT_FALSE(is_same_origin("null", "localhost:8040"));
}

TEST(Guard, TheSessionIsFoundAmongOtherCookies) {
  EXPECT_EQ(session_in("a=b; capstone_session=12ab; c=d"), "12ab");
  EXPECT_EQ(session_in("xcapstone_session=12ab"), "");
  EXPECT_EQ(session_in(""), "");
}

TEST(Guard, FormTokensDifferBySessionAndAreComparedWhole) {
  EXPECT_NE(form_token("a"), form_token("b"));
  EXPECT_TRUE(same_secret("abc", "abc"));
  EXPECT_FALSE(same_secret("abc", "abd"));
  EXPECT_FALSE(same_secret("abc", "ab"));
  EXPECT_FALSE(same_secret("", "a"));
}

}  // namespace
}  // namespace capstone::desk
