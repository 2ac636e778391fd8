#include "cli/course.h"

#include <fmt/format.h>

#include <string_view>

namespace capstone::cli {
namespace {

constexpr const char* kMultiply = "First we make the multiply fast.";
constexpr const char* kModel = "Then we make the model fast.";

}  // namespace

const std::vector<CourseSession>& course() {
  static const std::vector<CourseSession> sessions{{"L1", "what a GPU is", kMultiply},
                                                   {"L2", "the CUDA model", kMultiply},
                                                   {"L3", "memory", kMultiply},
                                                   {"L4", "the GEMM ladder I", kMultiply},
                                                   {"L5", "the GEMM ladder II", kMultiply},
                                                   {"L6", "tensor cores", kMultiply},
                                                   {"L7", "profiling", kMultiply},
                                                   {"L8", "attention", kMultiply},
                                                   {"W1", "FlashAttention", kModel},
                                                   {"W2", "the Hopper GEMM", kModel},
                                                   {"W3", "the abstraction ladder", kModel},
                                                   {"W4", "serving", kModel},
                                                   {"W5", "Blackwell and NVFP4", kModel},
                                                   {"W6", "DeepSeek and AI kernels", kModel}};
  return sessions;
}

std::string syllabus_text(const std::string& here, const Terminal& terminal) {
  std::string text;
  const char* half = "";
  for (const CourseSession& session : course()) {
    if (std::string_view(half) != session.half) {
      half = session.half;
      text += fmt::format("{}\n  {}\n\n", text.empty() ? "" : "\n", terminal.paint(Tone::kBold, half));
    }
    const bool now = here == session.id;
    const std::string line = fmt::format("  {} {}  {}", now ? "──▶" : " │ ", session.id, session.title);
    text += (now ? terminal.paint(Tone::kGood, line + "   ◀── we are HERE") : line) + "\n";
  }
  text += "\n      capstone: you against the machine; the worklog is graded, not the speed";
  return text;
}

std::string syllabus_line(const std::string& here, const Terminal& terminal) {
  std::string text;
  const char* title = "";
  for (const CourseSession& session : course()) {
    const bool now = here == session.id;
    if (now) title = session.title;
    text += (text.empty() ? "" : " ") +
            (now ? terminal.paint(Tone::kGood, fmt::format("[{}]", session.id)) : std::string(session.id));
  }
  return fmt::format("{}   we are HERE: {}", text, title);
}

}  // namespace capstone::cli
