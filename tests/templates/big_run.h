#pragma once
// A run with many nodes, as an evolution makes them.
#include <fmt/format.h>

#include <random>

#include "harness/base/json.h"
#include "harness/machine/archive.h"

namespace capstone {

/// Kernels of 120 lines that differ from their parents in a few; each prompt has two kernels.
class BigRun {
 public:
  BigRun(const std::filesystem::path& folder, int nodes) : archive_(machine::Archive::open(folder).value()) {
    info_.kind = "evolve";
    info_.provider = "a test";
    info_.prompt_sha256 = archive_.keep(standard_ + "## How to answer\n").value();
    for (int i = 0; i < nodes; ++i) tree_.push_back(node(i));
  }
  const machine::Archive& archive() const { return archive_; }
  const machine::RunInfo& info() const { return info_; }
  const machine::Tree& tree() const { return tree_; }

 private:
  std::string code(int i) {
    std::mt19937 random(static_cast<unsigned>(i));
    std::string text = fmt::format("// made for node {}\n", i);
    for (int line = 0; line < 120; ++line)
      text += fmt::format("  float a{} = x[{} * stride + {}] * scale;  // keep it in a register\n", line,
                          line % 7 == i % 7 ? random() % 1000 : 5, line);
    return text;
  }
  machine::Node node(int i) {
    machine::Node n;
    n.state = machine::NodeState::kDone;
    n.round = 1 + i / 25;
    n.island = 1 + i % 2;
    const bool ideas = i % 9 == 0;
    n.name = ideas ? fmt::format("{}-{}x{}", n.round, n.island, i)
                   : fmt::format("{}-{}-{}-1", n.round, n.island, i);
    if (i > 0) n.parent = tree_[static_cast<std::size_t>(ideas ? i / 2 : i - i % 9)].name;
    n.prompt_sha256 = archive_.keep(standard_ + code(i / 2) + code(i / 3) + "## How to answer\n").value();
    if (ideas) {
      n.kind = machine::NodeKind::kIdeas;
      for (int k = 0; k < 8; ++k) n.ideas.push_back(fmt::format("word{}a word{}b thing{}c", i, k, i * k));
      n.reply_sha256 = archive_.keep(fmt::format("1. idea of {}\n", i)).value();
      return n;
    }
    n.idea = fmt::format("Let every warp take {} rows and keep them in registers.", i);
    n.reply_sha256 = archive_.keep("Here it is.\n```cuda\n" + code(i) + "```\n").value();
    n.source_sha256 = archive_.keep(code(i)).value();
    Measurement m;
    m.gate_one = i % 3 ? GateOne::kPassed : GateOne::kWrong;
    n.verdict = label_of(m.gate_one);
    n.measurement_sha256 = archive_.keep(Json(m).dump()).value();
    if (i % 3) n.fitness = machine::Fitness{{1.0 + i * 1e-3, 1.0, 2.0}, true};
    return n;
  }

  machine::Archive archive_;
  machine::RunInfo info_;
  std::string standard_ = "# Write a CUDA kernel\n" + std::string(6000, 'p') + "\n";
  machine::Tree tree_;
};

}  // namespace capstone
