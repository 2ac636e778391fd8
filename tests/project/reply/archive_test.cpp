// Archives from untrusted sources. They are made entry by entry with libarchive, which writes any name.
#include "harness/project/archive/archive.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "harness/base/files.h"
#include "harness/project/archive/archive_handle.h"

namespace capstone {
namespace {

class ArchiveFromStrangers : public ::testing::Test {
 protected:
  ArchiveFromStrangers() {
    base = fs::path(::testing::TempDir()) / ("capstone-archive-" + std::to_string(::getpid()) +
                                             ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(base);
    fs::create_directories(base);
  }
  ~ArchiveFromStrangers() override { fs::remove_all(base); }

  struct Item {
    std::string path, content, link;
    unsigned type = AE_IFREG;
    bool hard = false;
  };
  fs::path make(const std::vector<Item>& items, bool zip = false) {
    ArchiveWriter writer(archive_write_new(), archive_write_free);
    if (zip)
      archive_write_set_format_zip(writer.get());
    else
      archive_write_set_format_gnutar(writer.get());
    fs::path file = base / (zip ? "x.zip" : "x.tar");
    EXPECT_EQ(archive_write_open_filename(writer.get(), file.c_str()), ARCHIVE_OK);
    for (const Item& item : items) {
      ArchiveEntry entry(archive_entry_new(), archive_entry_free);
      archive_entry_set_pathname(entry.get(), item.path.c_str());
      archive_entry_set_filetype(entry.get(), item.type);
      archive_entry_set_perm(entry.get(), 04777);
      archive_entry_set_size(entry.get(), static_cast<la_int64_t>(item.content.size()));
      if (!item.link.empty() && item.hard) archive_entry_set_hardlink(entry.get(), item.link.c_str());
      if (!item.link.empty() && !item.hard) archive_entry_set_symlink(entry.get(), item.link.c_str());
      EXPECT_EQ(archive_write_header(writer.get(), entry.get()), ARCHIVE_OK) << archive_reason(writer.get());
      archive_write_data(writer.get(), item.content.data(), item.content.size());
    }
    archive_write_close(writer.get());
    return file;
  }
  // Nothing may be left behind: neither the destination nor its staging folder nor anything next to them.
  void expect_refused(const fs::path& file, const std::string& why, const UnpackLimits& limits = {}) {
    fs::path out = base / "inner" / "out";
    auto unpacked = unpack_archive(file, out, limits);
    ASSERT_FALSE(unpacked) << why;
    EXPECT_NE(unpacked.error().what.find(why), std::string::npos) << unpacked.error().what;
    EXPECT_TRUE(!fs::exists(base / "inner") || fs::is_empty(base / "inner"));
    EXPECT_FALSE(fs::exists(base / "evil"));
  }
  fs::path base;
};

TEST_F(ArchiveFromStrangers, ZipSlipIsRefused) {
  for (bool zip : {false, true}) {
    expect_refused(make({{"ok.txt", "a", ""}, {"../evil", "a", ""}}, zip), "climbs out");
    expect_refused(make({{"a/../../../evil", "a", ""}}, zip), "climbs out");
    expect_refused(make({{"..", "", "", AE_IFDIR}}, zip), "climbs out");
    expect_refused(make({{"/tmp/capstone-evil", "a", ""}}, zip), "absolute path");
    expect_refused(make({{"a\\..\\evil", "a", ""}}, zip), zip ? "" : "backslash");
  }
}

TEST_F(ArchiveFromStrangers, LinksAndDevicesAreRefused) {
  expect_refused(make({{"a", "", "/etc/passwd", AE_IFLNK}}), "a link");
  expect_refused(make({{"a", "x", ""}, {"b", "", "a", AE_IFREG, true}}), "a link");
  expect_refused(make({{"d", "", "..", AE_IFLNK}, {"d/evil", "a", ""}}), "a link");
  expect_refused(make({{"pipe", "", "", AE_IFIFO}}), "neither a plain file nor a folder");
  expect_refused(make({{"null", "", "", AE_IFCHR}}), "neither a plain file nor a folder");
}

TEST_F(ArchiveFromStrangers, LimitsCountWhatComesOut) {
  expect_refused(make({{"a", std::string(1000, 'a'), ""}, {"b", std::string(1000, 'a'), ""}}), "unpacked",
                 {10, 1500, 1500, 4});
  expect_refused(make({{"a", std::string(1000, 'a'), ""}}), "larger than", {10, 1500, 500, 4});
  expect_refused(make({{"a", "", ""}, {"b", "", ""}, {"c", "", ""}}), "more than 2 entries",
                 {2, 1500, 500, 4});
  expect_refused(make({{"a/b/c/d/e", "", ""}}), "folders deep", {10, 1500, 500, 4});
}

TEST_F(ArchiveFromStrangers, ABombIsStoppedByWhatItUnpacksTo) {
  std::string zeros(std::size_t{40} << 20, '\0');
  std::string bytes = pack_archive({{"zeros", zeros}}, Packing::kTarGz, 0).value();
  ASSERT_LT(bytes.size(), 100000u);
  ASSERT_TRUE(write_file_atomic(base / "bomb.tar.gz", bytes));
  expect_refused(base / "bomb.tar.gz", "larger than", {10, 8u << 20, 8u << 20, 4});
}

TEST_F(ArchiveFromStrangers, NamesThatDeceiveAreRefused) {
  expect_refused(make({{"a\nb", "a", ""}}), "control character");
  expect_refused(make({{"a\x1b[2J", "a", ""}}), "control character");
  expect_refused(make({{"a", "1", ""}, {"a", "2", ""}}), "twice");
  expect_refused(make({{"a", "1", ""}, {"./a", "2", ""}}), "twice");
  expect_refused(make({{"a", "1", ""}, {"a/b", "2", ""}}), "same name");
  expect_refused(make({{std::string(300, 'n'), "1", ""}}), "too long");
}

// A zip of empty files, byte by byte: libarchive writes no name in an encoding that the locale lacks.
std::string zip_of(const std::vector<std::string>& names, unsigned flags) {
  auto number = [](std::size_t value, int bytes) {
    std::string out;
    for (; bytes > 0; --bytes, value >>= 8) out += static_cast<char>(value & 0xff);
    return out;
  };
  std::string files, directory;
  for (const std::string& name : names) {
    const std::string common =
        number(20, 2) + number(flags, 2) + std::string(18, '\0') + number(name.size(), 2) + number(0, 2);
    directory += "PK\1\2" + number(20, 2) + common + std::string(10, '\0') + number(files.size(), 4) + name;
    files += "PK\3\4" + common + name;
  }
  return files + directory + "PK\5\6" + number(0, 4) + number(names.size(), 2) + number(names.size(), 2) +
         number(directory.size(), 4) + number(files.size(), 4) + number(0, 2);
}

TEST_F(ArchiveFromStrangers, NamesInAnyEncodingComeOutAsUtf8) {
  constexpr unsigned kUtf8 = 0x800;  // the flag of a zip entry
  auto bytes_of = [](const fs::path& file) { return read_file(file, 1u << 20).value(); };
  auto files_of = [&](const std::string& bytes) {
    EXPECT_TRUE(write_file_atomic(base / "names", bytes));
    fs::remove_all(base / "out");
    auto unpacked = unpack_archive(base / "names", base / "out");
    EXPECT_TRUE(unpacked) << render(unpacked.error());
    return unpacked ? unpacked->files : std::vector<std::string>{};
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(files_of(zip_of({"Jörg Müller/a", "李🦄/b"}, kUtf8)), (Names{"Jörg Müller/a", "李🦄/b"}));
  EXPECT_EQ(files_of(zip_of({"Müller/a"}, 0)), Names{"Müller/a"}) << "UTF-8 without the flag";
  EXPECT_EQ(files_of(zip_of({"J\x94rg M\x81ller/a"}, 0)), Names{"Jörg Müller/a"}) << "Windows";
  EXPECT_EQ(files_of(bytes_of(make({{"J\xF6rg/a", "", ""}}))), Names{"Jörg/a"}) << "Latin-1 in a tar";
  EXPECT_EQ(files_of(bytes_of(make({{"\x81", "", ""}, {"\x8D", "", ""}}))), (Names{"%81", "%8D"}));
  ASSERT_TRUE(write_file_atomic(base / "false.zip", zip_of({"M\xFFller"}, kUtf8)));
  expect_refused(base / "false.zip", "a name that is not in the encoding");
}

TEST_F(ArchiveFromStrangers, DamageIsAnErrorAndLeavesNothing) {
  std::string random = "0123456789";
  for (int i = 0; i < 10; ++i) random += random + std::to_string(i * 7919);
  std::string bytes = pack_archive({{"a", random}}, Packing::kTarGz, 0).value();
  ASSERT_TRUE(write_file_atomic(base / "cut.tar.gz", bytes.substr(0, bytes.size() / 2)));
  expect_refused(base / "cut.tar.gz", "truncated gzip input");
  ASSERT_TRUE(write_file_atomic(base / "text", "this is no archive\n"));
  expect_refused(base / "text", "cannot");
  EXPECT_FALSE(unpack_archive(base / "nowhere", base / "out"));
}

TEST_F(ArchiveFromStrangers, ModesOfTheArchiveAreIgnored) {
  auto unpacked = unpack_archive(make({{"d", "", "", AE_IFDIR}, {"d/a", "x", ""}}), base / "out");
  ASSERT_TRUE(unpacked) << render(unpacked.error());
  auto mode = fs::status(base / "out/d/a").permissions();
  EXPECT_EQ(mode & (fs::perms::owner_exec | fs::perms::others_write | fs::perms::set_uid), fs::perms::none);
}

TEST_F(ArchiveFromStrangers, AZipIsUnderstood) {
  auto unpacked = unpack_archive(make({{"p/a.txt", "x", ""}}, true), base / "out");
  ASSERT_TRUE(unpacked) << render(unpacked.error());
  EXPECT_EQ(unpacked->files, std::vector<std::string>{"p/a.txt"});
  EXPECT_EQ(read_file(base / "out/p/a.txt").value(), "x");
}

TEST(PackArchive, OrderOfEntriesDoesNotMatterAndGzipHasNoTime) {
  auto a = pack_archive({{"b", "2"}, {"a", "1"}}, Packing::kTarGz, 5).value();
  auto b = pack_archive({{"a", "1"}, {"b", "2"}}, Packing::kTarGz, 5).value();
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.substr(4, 4), std::string(4, '\0'));  // MTIME of RFC 1952
}

}  // namespace
}  // namespace capstone
