#include "harness/project/scaffold.h"

#include <fmt/format.h>

namespace capstone {

std::string project_readme(const Problem& problem) {
  return fmt::format(
      R"(# You vs the machine: {title}

You write this kernel by hand. Then a language model gets the same reference. Both are judged by the same two
gates: *correct* on inputs nobody has seen, and *faster* than the baseline. What is graded is neither: it is your
worklog of the fight. A race lost and explained beats a race won and not understood.

## The next three commands

1. Guess before you write any code (what will be the limit, and why?):

       capstone predict memory --because "…"

2. Fill in `human/kernel.cu`, then have it judged; say what changed and what you expect. Do this often:

       capstone measure -m "one thread an element" --expect 0.5

3. When your kernel passes gate one, give the model its turn:

       capstone llm prompt        # then: llm/README.md

Then write `worklog.md`: `capstone report` fills its numbers in from the ledger, `capstone check` says what is
still missing, `capstone submit` packs what you hand in.

## What is where

| path | what it is |
|---|---|
| `problem/` | the problem as it was when you began; leave it alone, verdicts are bound to it |
| `human/kernel.cu` | your kernel; every version that you measure is kept |
| `llm/` | what the model was asked and what it answered, one folder an attempt |
| `worklog.md` | your words; numbers, tables and plots are filled in |
| `report/` | made by `capstone report`; belongs to what you hand in |
| `.capstone/` | the ledger and the sources of all versions: keep it, never edit it |
| `capstone.yaml` | who you are |
)",
      fmt::arg("title", problem.title));
}

std::string model_readme(const Problem& problem) {
  return fmt::format(
      R"(# The model's attempt

The model gets what you got: the statement, the reference, the contract, the tolerance. Nothing else, and no help.

1. `capstone llm prompt` writes the exact prompt for `{id}` to `llm/prompt.md`. Give it to any model, unchanged.
2. Save the reply as it came, then file it: `capstone llm add reply.md --model "name and version"`.
   The code is taken out of it for you and judged like yours. Do not mend it: a reply that does not compile is a
   result, too. `capstone measure llm` judges it once more, on another machine for instance.

A second try is fair: `capstone llm prompt --feedback` adds the compiler's or the judge's words. Each reply gets a
folder of its own, `attempt-1`, `attempt-2` …, with `prompt.md`, `reply.md`, `kernel.cu` (when there was code) and
`meta.json`. A number is never used twice and a folder never written again: the attempts that failed are
part of the story.
)",
      fmt::arg("id", problem.id));
}

std::string git_ignore() {
  return R"(# Build products. The report, the ledger and the kept sources are not ignored: they are your work.
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
)";
}

std::string git_attributes() {
  return R"(# Digests are taken over bytes: line ends must survive a checkout on any system.
/problem/** -text
/human/** -text
/llm/** -text
/.capstone/** -text
)";
}

}  // namespace capstone
