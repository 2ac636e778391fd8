#!/usr/bin/env python3
"""Every relative link in a Markdown file leads to a file, and every anchor to a heading. In docs/ and the
README, a path of the repository in code style (`harness/judge/judge.h`) must exist, too."""

import os
import re
import sys

from pages import ROOT, all_pages, lines_of

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
CODE = re.compile(r"(`+)(.+?)\1")
ROOMS = sorted(
    name
    for name in os.listdir(ROOT)
    if (ROOT / name).is_dir() and name not in ("build", "dist", ".git", "site")
)
PATH = re.compile(r"^(?:%s)/[\w./{},*<>-]*$" % "|".join(re.escape(room) for room in ROOMS))
# What is built, and what a reader creates by following a page: not in the repository.
ELSEWHERE = re.compile(r"^(?:docs/site|problems/mine|examples/mine)\b")


def slugs(name):
    """The anchors of a page, as GitHub and as mkdocs make them."""
    found = set()
    for _, line, fence in lines_of(name):
        found.update(re.findall(r'<a (?:id|name)="([^"]+)"', line))
        heading = re.match(r"^#{1,6}\s+(.*?)\s*#*$", line)
        if fence is not None or not heading:
            continue
        text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1)).replace("`", "")
        explicit = re.search(r"\{#([\w-]+)\}\s*$", text)
        if explicit:
            found.add(explicit.group(1))
            continue
        github = re.sub(r"[^\w\- ]", "", text.lower().strip()).replace(" ", "-")
        ascii_only = text.encode("ascii", "ignore").decode()
        mkdocs = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())
        for slug in {github, mkdocs}:
            repeated, candidate = 0, slug
            while candidate in found:
                repeated += 1
                candidate = f"{slug}-{repeated}"
            found.add(candidate)
    return found


def paragraphs(page):
    """(number of the first line, text) of each paragraph, row or item outside of code blocks.

    A link may be broken over lines.
    """
    first, lines = 0, []
    for number, line, fence in [*lines_of(page), (0, "", None)]:
        if fence is not None or not line.strip() or re.match(r"^\s*(?:[-*|#]|\d+\.)", line):
            if lines:
                yield first, "\n".join(lines)
            first, lines = number, []
        if fence is None and line.strip():
            first = first if lines else number
            lines.append(line)


def link_error(page, target):
    if re.match(r"^[a-z][a-z0-9+.-]*:", target) or target.startswith("//"):
        return None
    path, _, anchor = target.partition("#")
    file = (ROOT / page).parent / path if path else ROOT / page
    if not file.exists():
        return f"no such file: {path}"
    if anchor and file.suffix == ".md" and anchor not in slugs(file.resolve().relative_to(ROOT)):
        return f"no such heading: {target}"
    return None


def expand(path):
    """`a/{b,c}.h` → a/b.h, a/c.h"""
    braces = re.search(r"\{([^{}]*)\}", path)
    if not braces:
        return [path]
    return [
        one
        for word in braces.group(1).split(",")
        for one in expand(path[: braces.start()] + word.strip() + path[braces.end() :])
    ]


def path_error(text):
    if not PATH.match(text) or ELSEWHERE.match(text):
        return None
    for path in expand(text):
        pattern = re.sub(r"<[^>]*>|\b[A-Z]{2,}\b|\bNN_\w+", "*", path).rstrip("/")
        if "..." in pattern or not pattern:
            continue
        if not (ROOT / pattern).exists() and not any(ROOT.glob(pattern)):
            return f"no such path in the repository: {path}"
    return None


def main():
    errors = []
    for page in all_pages():
        checks_paths = page.startswith("docs/") or page in ("README.md", "CONTRIBUTING.md")
        for number, text in paragraphs(page):
            for target in LINK.findall(CODE.sub(lambda found: "`" + "x" * len(found.group(2)) + "`", text)):
                error = link_error(page, target)
                if error:
                    errors.append(f"{page}:{number}: {error}")
            for _, code in CODE.findall(text) if checks_paths and page != "docs/glossary.md" else []:
                error = path_error(code.strip())
                if error:
                    errors.append(f"{page}:{number}: {error}")
    print("\n".join(errors))
    print(f"{len(errors)} dead links or paths" if errors else "every link and path leads somewhere")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
