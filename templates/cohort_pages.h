#pragma once
// Pages about a whole cohort. Each page is one self-contained file. Names and texts of students are always
// escaped.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "harness/course/gradebook/gradebook.h"
#include "harness/course/gradebook/leaderboard.h"

namespace capstone {

/// Two projects whose kernels share code. `share` is the shared part of the smaller kernel [0, 1].
struct SimilarPair {
  std::string first, second;
  double share = 0;
};

struct GradebookPage {
  std::string title;
  const std::vector<GradebookRow>& rows;
  const Rubric& rubric;
  const std::map<std::string, ResultSummary>& summaries;
  std::vector<SimilarPair> similar;
  std::string generated;  ///< UTC
};
/// The gradebook for mentors: a table with search and sort, fast_p of humans and models, wins and losses, the
/// distribution of marks, similar pairs. The page's security policy allows its only script by hash. Links
/// lead to submissions/NAME/score_sheet.html in the same folder.
/// @error here and below: a page template is missing or broken.
Result<std::string> gradebook_page(const GradebookPage& page, const std::filesystem::path& templates);

/// The leaderboards in large type, for a projector or a screen on the wall.
Result<std::string> leaderboard_page(const std::vector<Board>& boards, const std::string& title,
                                     const std::filesystem::path& templates);

/// Slides for the presentations, one per submission, in the order of `running_order`.
Result<std::string> present_page(const std::vector<GradebookRow>& rows,
                                 const std::map<std::string, ResultSummary>& summaries,
                                 const std::vector<std::string>& running_order, const std::string& title,
                                 const std::filesystem::path& templates);

struct Certificate {
  std::string name, problem;
};  ///< problem: its title
struct CertificateText {
  std::string course, date, signatory;
  std::string logo;  ///< a data: URI that capstone made, inserted unescaped; empty: no logo
};
/// One HTML file with one A4 landscape page, drawn in SVG, for each certificate.
Result<std::string> certificates_page(const std::vector<Certificate>& certificates,
                                      const CertificateText& text, const std::filesystem::path& templates);
/// One certificate as a separate SVG file.
Result<std::string> certificate_svg(const Certificate& certificate, const CertificateText& text,
                                    const std::filesystem::path& templates);

/// What a person sees of published marks: points and reasons of each criterion, and the total. Reasons keep
/// their lines.
/// @param markdown  false: plain text, for a terminal
std::string marks_text(const GradebookRow& row, const Rubric& rubric, bool markdown);
Result<std::string> marks_page(const GradebookRow& row, const Rubric& rubric,
                               const std::filesystem::path& templates);

/// The five sections of the worklog and the rubric, on one page for printing.
Result<std::string> handout_page(const Rubric& rubric, const std::filesystem::path& templates);

}  // namespace capstone
