// Any bytes for a submission's archive: plain files below the destination within the limits, or a reason and
// nothing at all.
#include "harness/project/archive/archive.h"
#include "tests/fuzz/driver.h"
#include "tests/model/scratch.h"

capstone::fuzz::Target capstone::fuzz::make_target() {
  namespace fs = std::filesystem;
  static const testing::Scratch scratch;
  static const UnpackLimits limits{.entries = 50, .total = 1 << 20, .file = 256 << 10, .depth = 4};
  const std::vector<PackEntry> entries{
      {"capstone.yaml", "schema: 1\n"}, {"human/kernel.cu", "__global__ void k() {}\n"}, {"a/b/c/d.txt", ""}};
  Target target;
  target.name = "archive";
  for (const Packing packing : {Packing::kTar, Packing::kTarGz})
    target.corpus.push_back(*pack_archive(entries, packing, 1'700'000'000));
  target.tokens = {"../",
                   "/etc/",
                   "./",
                   std::string(100, 'a'),
                   std::string(1, '\0'),
                   "ustar",
                   "PK\x03\x04",
                   "PK\x01\x02",
                   "PK\x05\x06",
                   "\x1f\x8b\x08",
                   "0000644",
                   "1",
                   "2",
                   "5",
                   "L",
                   "x",
                   "g",
                   "././@LongLink",
                   "30 path=../../x\n",
                   "7777777777"};
  target.run = [](const std::string& text) {
    const fs::path archive = scratch.write("archive", text), destination = scratch.path() / "out";
    const auto unpacked = unpack_archive(archive, destination, limits);
    std::uintmax_t bytes = 0;
    std::size_t files = 0;
    if (fs::exists(destination))
      for (const auto& entry : fs::recursive_directory_iterator(destination)) {
        expect(!entry.is_symlink() && (entry.is_directory() || entry.is_regular_file()),
               "plain files and folders");
        if (!entry.is_directory()) bytes += entry.file_size(), ++files;
      }
    fs::remove_all(destination);
    for (const auto& entry : fs::directory_iterator(scratch.path()))
      expect(entry.path() == archive, "nothing beside the destination");
    if (!unpacked) {
      expect(!unpacked.error().what.empty() && files == 0, "a reason, and nothing unpacked");
      return;
    }
    expect(unpacked->files.size() == files && unpacked->bytes == bytes, "what is listed is there");
    expect(files <= limits.entries && bytes <= limits.total, "within the limits");
  };
  return target;
}
