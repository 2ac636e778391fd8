#pragma once
// A bundle holds what another machine needs to judge a project: `measure --bundle FILE` here, `measure` in
// the unpacked folder there, `ledger import` back here.
#include <filesystem>
#include <string>
#include <vector>

#include "harness/base/error.h"
#include "harness/base/json.h"
#include "harness/project/archive/submission.h"
#include "harness/project/project.h"

namespace capstone {

struct BundleRequest {
  std::vector<std::string> candidates = {
      "human", "llm"};            ///< "human", "llm" (every attempt), "together" or "attempt-3"
  Json options = Json::object();  ///< options of the measurement, as the command
                                  ///< line defines them
  std::string tool;               ///< version of capstone
};

struct BundleReceipt : Receipt {
  std::vector<SkippedFile> left_out;  ///< files of the candidates' folders that a kernel might have included
};

/// Writes a reproducible tar of capstone.yaml, problem/, the text files in the candidates' folders except
/// Markdown, .capstone/bundle.json and an empty ledger. It holds no worklog, no report and no history.
/// @error a candidate that does not exist; a candidate without a kernel.
Result<BundleReceipt> pack_bundle(const Project& project, const BundleRequest& request,
                                  const std::filesystem::path& out);

/// An unpacked bundle.
struct Bundle {
  std::filesystem::path root;              ///< a project folder with an empty ledger
  std::vector<std::string> candidates;     ///< as requested when it was packed
  std::string problem_id, problem_digest;  ///< compare with the unpacked problem's before judging
  std::string tool;                        ///< version of capstone that packed it
  Json options;
};

/// Unpacks a bundle into `destination`, which must be missing or empty. Safe for files from an untrusted
/// source: see unpack_archive().
/// @error not a bundle; anything that unpack_archive() refuses.
Result<Bundle> unpack_bundle(const std::filesystem::path& file, const std::filesystem::path& destination);

}  // namespace capstone
