// Judges a kernel: judge_kernel PROBLEM KERNEL.cu
#include <harness/judge/judge.h>

#include <iostream>

int main(int argc, char** argv) {
  using namespace capstone;
  if (argc != 3) return std::cerr << "usage: judge_kernel PROBLEM KERNEL.cu\n", 2;
  // The installed capstone program, and a folder that keeps builds for the next run.
  auto resources = locate_resources(CAPSTONE_EXECUTABLE, "judge_cache", "/usr/local/bin:/usr/bin:/bin");
  if (!resources) return std::cerr << render(resources.error()), 3;
  auto problem = find_problem(resources->problems(), argv[1]);
  if (!problem) return std::cerr << render(problem.error()), 2;
  JudgeRequest request;
  request.problem = &*problem;
  request.candidates = {{"mine", argv[2]}};
  request.options.backend = Backend::kEmulated;  // without a GPU; kAuto uses one where there is one
  auto judged =
      judge(request, *resources, [](const StageEvent& event) { std::cerr << event.line() << '\n'; });
  if (!judged) return std::cerr << render(judged.error()), 3;
  const Measurement& verdict = judged->front();
  std::cout << "gate one: " << label_of(verdict.gate_one) << ", gate two: " << label_of(verdict.gate_two)
            << '\n';
  return verdict.gate_one == GateOne::kPassed ? 0 : 1;
}
