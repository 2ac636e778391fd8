#include "harness/base/digest.h"

#include <gtest/gtest.h>

#include "harness/base/encode.h"
#include "tests/base/scratch.h"

namespace capstone {
namespace {

TEST(Digest, KnownAnswers) {  // FIPS 180-2, appendix B
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Encode, Base64AsRfc4648HasIt) {
  for (const auto& [bytes, text] : {std::pair{"", ""}, std::pair{"f", "Zg=="}, std::pair{"fo", "Zm8="},
                                    std::pair{"foo", "Zm9v"}, std::pair{"foobar", "Zm9vYmFy"}})
    EXPECT_EQ(base64(bytes), text);
  EXPECT_EQ(base64(std::string_view("\xff\x00\xfe", 3)), "/wD+");
}

TEST(Encode, HexHasTwoDigitsAByte) {
  const unsigned char bytes[] = {0x00, 0x0a, 0xff};
  EXPECT_EQ(hex(bytes), "000aff");
}

TEST(Digest, FileAndBytesAgreeAndAMissingFileIsAnError) {
  test::Scratch scratch;
  const std::string bytes("a\0b\nc", 5);
  test::put(scratch / "file", bytes);
  EXPECT_EQ(sha256_file(scratch / "file").value(), sha256_hex(bytes));
  auto missing = sha256_file(scratch / "none");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().where, (scratch / "none").string());
}

TEST(Digest, PartsCannotBeShiftedIntoEachOther) {
  auto of = [](std::string_view a, std::string_view b) { return DigestBuilder().add(a, b).hex(); };
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(DigestBuilder().add("a", "x").add("b", "y").hex(),
            DigestBuilder().add("b", "y").add("a", "x").hex());
  EXPECT_EQ(of("a", "b"), of("a", "b"));
}

TEST(ErrorText, ShowsWhatWhereAndHintAndLeavesOutWhatIsEmpty) {
  EXPECT_EQ(render({"no such thing", "a.yaml:3:1", "try b"}),
            "error: no such thing\n  --> a.yaml:3:1\n  hint: try b\n");
  EXPECT_EQ(render({"no such thing", "", ""}), "error: no such thing\n");
}

}  // namespace
}  // namespace capstone
