#!/usr/bin/env python3
"""Lines of the documents hold at most 110 characters (tables and what scripts write aside), the README at
most 80 lines, and the words that the glossary replaced, and some old-fashioned ones, are gone."""

import re
import sys

from pages import ROOT, all_pages, lines_of

WIDTH = 110
README_LINES = 80
OURS = re.compile(
    r"^(README|CONTRIBUTING|CHANGELOG)\.md$|^docs/|^(harness|problems|tests/corpus|examples)/README\.md$"
    r"|^problems/hints/|^harness/analysis/[^/]*/README\.md$|^reference_kernels/README\.md$"
)
# Pages that must name an old word: to say what replaced it.
MAY_SAY_OLD = {
    "docs/glossary.md",
    "CHANGELOG.md",
    "docs/reference/commands.md",
    "docs/reference/result_json.md",
}
OLD = re.compile(
    r"\b(museums?|exhibits?|contestants?|opponents?|suspects?|lonely|sealed|host tier|"
    r"capstone-(?:recorder|launcher|player)|flavours?|staircases?)\b",
    re.I,
)
QUAINT = re.compile(
    r"\b(nobody|shall|whoever|one's own|of ours|for ever|beside|over there|asked for|takes it up)\b", re.I
)


def main():
    errors = []
    for page in filter(OURS.match, all_pages()):
        measured = False
        for number, line, fence in lines_of(page):
            where = f"{page}:{number}"
            if re.fullmatch(r"<!-- (end of )?measured -->", line):
                measured = not measured
            table = line.lstrip().startswith(("|", "- **Measured here**")) and page != "README.md"
            if len(line) > WIDTH and not table and not measured:
                errors.append(f"{where}: {len(line)} characters, at most {WIDTH}")
            if fence is not None or measured or page in MAY_SAY_OLD:
                continue
            text = re.sub(r"`[^`]*`", "", line)
            for found in OLD.finditer(text):
                errors.append(f"{where}: old word “{found.group()}”: see docs/glossary.md")
            for found in QUAINT.finditer(text):
                errors.append(f"{where}: “{found.group()}”: say it in plain words")
    length = len((ROOT / "README.md").read_text(encoding="utf-8").splitlines())
    if length > README_LINES:
        errors.append(f"README.md: {length} lines, at most {README_LINES}")
    print("\n".join(errors) or "lines and words are as they should be")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
