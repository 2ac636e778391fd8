"""Which Markdown files there are, and how their blocks are read. Shared by the checks in this folder."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Replies and prompts of models, and a report's own text: kept as they came.
NOT_OURS = re.compile(
    r"^(tests/project/reply/|tests/templates/|templates/prompts/"
    r"|examples/[^/]*/(llm|report|problem)/|examples/[^/]*/worklog\.md)"
)


def all_pages():
    """Every Markdown file of the repository that a person wrote for readers, relative to its root."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:  # an unpacked archive
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if "build" not in path.parts]
    return sorted(name for name in set(names) if not NOT_OURS.match(name) and (ROOT / name).exists())


def lines_of(name):
    """(number, line, fence) of each line; fence: the info string of the code block around it, else None."""
    fence = marker = None
    for number, line in enumerate((ROOT / name).read_text(encoding="utf-8").splitlines(), 1):
        opened = re.match(r"^\s*(```+|~~~+)\s*(.*)$", line)
        if opened and fence is None:
            fence, marker = opened.group(2).strip(), opened.group(1)
            yield number, line, ""
        elif opened and opened.group(1).startswith(marker) and not opened.group(2):
            fence = None
            yield number, line, ""
        else:
            yield number, line, fence
