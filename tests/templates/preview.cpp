// Renders the fixture into a folder, for people and for scripts/check_html.sh:
//   report_preview FOLDER [gpu|emulated] [student|mentor] [NUMBER OF VERSIONS]
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "fixture.h"
#include "harness/base/files.h"
#include "templates/report.h"

int main(int argc, char** argv) {
  using namespace capstone;
  if (argc < 2) return 2;
  bool emulated = argc > 2 && std::strcmp(argv[2], "emulated") == 0,
       mentor = argc > 3 && std::strcmp(argv[3], "mentor") == 0;
  testing::Scratch scratch;
  testing::Capstone capstone =
      testing::make_capstone(scratch.path(), emulated ? testing::Where::kEmulated : testing::Where::kGpu);
  if (argc > 4)
    testing::add_versions(capstone, std::atoi(argv[4]),
                          emulated ? testing::Where::kEmulated : testing::Where::kGpu);
  Resources resources = testing::test_resources();
  ReportInput input{&capstone.project, &capstone.ledger, &resources, std::nullopt, "2026-03-09T18:00:00Z"};
  if (!emulated) input.roof = Roof{3.35e12, 66.9e12, "H100 SXM, FP32"};
  Result<ReportFiles> report = render_report(input);
  if (report && mentor) {
    Result<Rubric> rubric = load_rubric(resources.share / "rubric" / "rubric.yaml");
    Result<std::string> worklog = read_file(capstone.project.worklog());
    ScoreSheet sheet = score(*rubric, capstone.project, capstone.ledger, parse_worklog(*worklog));
    report->files = *render_score_sheet(input, sheet, Audience::kMentor);
  }
  Result<void> written = report ? write_report(*report, argv[1]) : tl::unexpected(report.error());
  if (!written) {
    std::fputs(render(written.error()).c_str(), stderr);
    return 1;
  }
  for (const Finding& f : report->findings)
    std::printf("%d %-13s %s (%s)\n", f.section, std::string(name_of(f.severity)).c_str(), f.what.c_str(),
                f.where.c_str());
  return 0;
}
