#include "harness/project/scaffold.h"

#include <fmt/format.h>

namespace capstone {

std::string project_readme(const Problem& problem) {
  return fmt::format(
      R"(# You vs the machine: {title}

You write this kernel by hand. Then a language model gets the same reference. Both kernels pass through the same
two gates: *correct* on hidden inputs, and *faster* than the baseline. Your grade depends on neither. It depends on
your worklog: a lost race that you can explain is worth more than a won race that you cannot.

## The next three commands

1. Guess before you write any code: what will limit the kernel, and why?

       capstone predict memory --because "…"

2. Fill in `human/kernel.cu`, then measure it. Say what you changed and which speedup you expect. Do this often:

       capstone measure -m "one thread per element" --expect 0.5

3. When your kernel passes gate one, ask the model:

       capstone llm prompt        # then: llm/README.md

Stuck? `capstone hint` shows the first of three hints. The ledger records it, and it costs no marks.

Then write `worklog.md`. `capstone report` fills in its numbers from the ledger, `capstone check` lists what is
still missing, and `capstone submit` packs what you hand in.

## Files

| path | content |
|---|---|
| `problem/` | the problem when you started; do not change it, because the verdicts are bound to it |
| `human/kernel.cu` | your kernel; every version that you measure is stored |
| `llm/` | the prompts and the model's replies, one folder per attempt |
| `worklog.md` | your text; numbers, tables and plots are filled in |
| `report/` | written by `capstone report`; you hand it in |
| `.capstone/` | the ledger and the sources of all versions: keep it, do not edit it |
| `capstone.yaml` | the authors and the problem |
)",
      fmt::arg("title", problem.title));
}

std::string model_readme(const Problem& problem) {
  return fmt::format(
      R"(# The model's attempt

The model gets what you got: the statement, the reference, the contract and the tolerance. It gets no other help.

1. `capstone llm prompt` writes the exact prompt for `{id}` to `llm/prompt.md`. Send it to any model, unchanged.
2. Save the reply unchanged, then add it: `capstone llm add reply.md --model "name and version"`.
   The command extracts the code and judges it like yours. Do not repair it: a reply that does not compile is also a
   result. `capstone measure llm` judges it again, for example on another machine.

A second attempt is fair: `capstone llm prompt --feedback` adds the messages of the compiler or the judge. Each reply
gets its own folder, `attempt-1`, `attempt-2` …, with `prompt.md`, `reply.md`, `kernel.cu` (if there was code) and
`meta.json`. Numbers are not reused and folders are not overwritten: failed attempts are part of your results.
)",
      fmt::arg("id", problem.id));
}

std::string git_ignore() {
  return R"(# Build products. The report, the ledger and the stored sources are not ignored: they are your work.
*.o
*.so
*.ptx
*.cubin
*.ncu-rep
*.nsys-rep
*.qdstrm
*.sqlite
a.out
__pycache__/
/build/
*.tar.gz
.capstone/*.lock
# Names folders of this machine.
/compile_commands.json
)";
}

std::string git_attributes() {
  return R"(# Digests cover exact bytes, so a checkout must not change the line ends on any system.
/problem/** -text
/human/** -text
/llm/** -text
/together/** -text
/.capstone/** -text
)";
}

}  // namespace capstone
