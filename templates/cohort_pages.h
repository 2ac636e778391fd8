#pragma once
// Pages about a whole cohort. Each is one self-contained file; names and texts of students are text on it, never HTML.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/leaderboard.h"

namespace capstone {

/// Two projects whose kernels share code.
struct SimilarPair { std::string first, second; double share = 0; };   ///< share: [0, 1] of the smaller one

struct GradebookPage {
  std::string title;
  const std::vector<GradebookRow>& rows;
  const Rubric& rubric;
  const std::map<std::string, ResultSummary>& summaries;
  std::vector<SimilarPair> similar;
  std::string generated;           ///< UTC
};
/// The table with search and sort (its one script is named by hash in the page's policy), fast_p of humans and models, wins and
/// losses, the spread of marks, similar pairs. Links lead to submissions/NAME/score_sheet.html beside it. @error as all below: a page template is missing.
Result<std::string> gradebook_page(const GradebookPage& page, const std::filesystem::path& templates);

/// For a wall: every board large.
Result<std::string> leaderboard_page(const std::vector<Board>& boards, const std::string& title, const std::filesystem::path& templates);

/// One screen a submission, in the order of `running_order`, for the day on which they are presented.
Result<std::string> present_page(const std::vector<GradebookRow>& rows, const std::map<std::string, ResultSummary>& summaries, const std::vector<std::string>& running_order,
                                 const std::string& title, const std::filesystem::path& templates);

struct Certificate { std::string name, problem; };   ///< problem: its title
struct CertificateText {
  std::string course, date, signatory;
  std::string logo;                ///< a data: URI of our own making; empty: none
};
/// One A4 page, landscape, each, as SVG in one HTML file.
Result<std::string> certificates_page(const std::vector<Certificate>& certificates, const CertificateText& text, const std::filesystem::path& templates);
/// One as an SVG file of its own.
Result<std::string> certificate_svg(const Certificate& certificate, const CertificateText& text, const std::filesystem::path& templates);

/// The five sections and the rubric on one page to print.
Result<std::string> handout_page(const Rubric& rubric, const std::filesystem::path& templates);

}  // namespace capstone
