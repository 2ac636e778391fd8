// `capstone demo`: what a teacher shows to a class.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "cli/context.h"
#include "cli/course.h"
#include "cli/demos.h"
#include "harness/base/files.h"
#include "harness/base/spelling.h"
#include "harness/base/text.h"
#include "harness/workflows/output_path.h"
#include "templates/demo_page.h"

namespace capstone::cli {
namespace {

// An option that the demo would ignore is an error.
Result<void> check_inputs(const Demo& chosen, const DemoInputs& inputs) {
  const std::pair<const char*, bool> given[] = {{"--kernel", !inputs.kernel.empty()},
                                                {"--record", !inputs.record.empty()},
                                                {"--nccl", !inputs.nccl.empty()},
                                                {"--from", !inputs.from.empty()},
                                                {"--problem", !inputs.problem.empty()},
                                                {"-k", inputs.tries > 0},
                                                {"--tiles", !inputs.tiles.empty()},
                                                {"--lengths", !inputs.lengths.empty()},
                                                {"--names", inputs.names},
                                                {"-p", inputs.chance > 0},
                                                {"--times", !inputs.times.empty()}};
  const auto takes = [](const Demo& one, const std::string& option) {
    return std::find(one.takes.begin(), one.takes.end(), option) != one.takes.end();
  };
  for (const auto& [option, is_given] : given) {
    if (!is_given || takes(chosen, option)) continue;
    std::vector<std::string> others;
    for (const Demo& one : demos())
      if (takes(one, option)) others.push_back(std::string("capstone demo ") + one.name);
    return fail(fmt::format("this demo takes no {}", option), {},
                fmt::format("{} {}", join(others, ", "), others.size() == 1 ? "does" : "do"),
                ExitCode::kUsage);
  }
  return {};
}

// Runs a demo. @param page  what it prints is written there, too; empty: nowhere
Result<void> play(const Context& context, const Demo& chosen, const DemoInputs& inputs,
                  const std::string& page) {
  if (page.empty()) return chosen.run(context, inputs);
  CAPSTONE_TRY(const fs::path file, workflows::output_path(context, page, workflows::Output::kPage));
  std::string text;
  Context kept = context;
  kept.terminal.keep_in(text);
  CAPSTONE_CHECK(chosen.run(kept, inputs));
  CAPSTONE_TRY(const std::string html,
               demo_page({chosen.name, chosen.session, chosen.what, text, chosen.line, utc_now()},
                         context.resources.templates()));
  CAPSTONE_CHECK(make_folders(file.parent_path()));
  return write_file_atomic(file, html);
}

Result<ExitCode> demo(const Context& context, const std::string& name, const DemoInputs& inputs,
                      const std::string& page) {
  const Terminal& t = context.terminal;
  if (name.empty()) {
    Table table({"demo", "session", "what it shows"});
    for (const Demo& one : demos()) table.row({t.paint(Tone::kBold, one.name), one.session, one.what});
    t.out(table.text(t));
    t.out("next: capstone demo NAME");
    return ExitCode::kDone;
  }
  const auto chosen =
      std::find_if(demos().begin(), demos().end(), [&](const Demo& one) { return name == one.name; });
  if (chosen == demos().end()) {
    std::vector<std::string> names;
    for (const Demo& one : demos()) names.emplace_back(one.name);
    const auto meant = nearest(name, names);
    return fail("no demo is called " + name, {},
                (meant ? "did you mean `" + *meant + "`?  " : "") + "demos: " + join(names, ", "));
  }
  CAPSTONE_CHECK(check_inputs(*chosen, inputs));
  CAPSTONE_TRY(const Course course, load_course(context.resources.reference_kernels()));
  t.out(syllabus_line(course, chosen->session, t) + "\n");
  CAPSTONE_CHECK(play(context, *chosen, inputs, page));
  t.out("\n" + t.paint(Tone::kBold, t.fold(fmt::format("“{}”", chosen->line))));
  return ExitCode::kDone;
}

}  // namespace

void add_demo(CLI::App& app, Context& context, Action& action) {
  auto* command = app.add_subcommand("demo", "a live demo for the classroom; without a name: list them");
  auto name = std::make_shared<std::string>();
  command->add_option("name", *name, "mountain, coalescing, online-softmax …");
  auto inputs = std::make_shared<DemoInputs>();
  command->add_option("--kernel", inputs->kernel, "serving: your kernel in the server")
      ->option_text("attention=FILE");
  command->add_option("--record", inputs->record,
                      "serving, two-gates, two-gpus, warmup: write what was measured to this file");
  command->add_option("--nccl", inputs->nccl, "two-gpus: libnccl.so.2, in place of PyTorch's")
      ->option_text("FILE");
  command
      ->add_option("--from", inputs->from,
                   "monkeys, feedback, evolution, quadrant: a project or a record, in place of the recorded "
                   "ones; quadrant: also the folder that `grade` made; two-gpus: a record")
      ->option_text("PATH");
  command->add_option("--problem", inputs->problem,
                      "monkeys, feedback, evolution, quadrant: of this problem alone");
  command->add_option("-k", inputs->tries, "monkeys, evolution: the first k tries alone")
      ->check(CLI::Range(1, 100000));
  command
      ->add_option("-p", inputs->chance, "monkeys: the room's chance of one try, and -k tries by the formula")
      ->check(CLI::Range(1e-9, 1.0));
  command
      ->add_option("--times", inputs->times,
                   "quadrant: the room's times, the baseline's first: what do they earn? 4.0,1.6,5.0")
      ->option_text("MS,MS…")
      ->delimiter(',')
      ->check(CLI::Range(1e-9, 1e9));
  command->add_option("--tiles", inputs->tiles, "online-softmax: the room's numbers, '1,3;2,5'")
      ->option_text("TILES");
  command
      ->add_option("--lengths", inputs->lengths,
                   "prefill-decode: the tokens of each request's answer, 12,3,30,7")
      ->option_text("LENGTHS");
  command->add_flag("--names", inputs->names, "quadrant: people instead of pseudonyms");
  auto page = std::make_shared<std::string>();
  command->add_option("--html", *page, "also write what the demo prints as a page")->type_name("FILE");
  command->callback([&context, &action, name, inputs, page] {
    action = [&context, name, inputs, page] { return demo(context, *name, *inputs, *page); };
  });
}

}  // namespace capstone::cli
