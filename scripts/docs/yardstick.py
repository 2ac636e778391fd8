#!/usr/bin/env python3
"""Writes the yardstick of the course: how near every ladder's best rung is to the peak of its GPU.

    scripts/docs/yardstick.py [--check]

    reference_kernels/results/*.json → docs/reference/yardstick.md, docs/images/yardstick-DEVICE.svg

A bar a ladder, grouped by session: percent of the peak that bounds the kernel (bandwidth or arithmetic, from the
data sheet). A mark shows the library in the same run. --check writes nothing: exit code 1 where a file is out of
date. Only the standard library of Python 3 is needed.
"""
import html
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import ladder_tables as tables  # noqa: E402

PAGE = ROOT / "docs/reference/yardstick.md"
IMAGES = ROOT / "docs/images"
ROW, HEAD, LABEL, BARS, RIGHT = 22, 42, 250, 300, 78  # [px]
SESSIONS = [f"L{i}" for i in range(1, 9)] + [f"W{i}" for i in range(1, 7)]

STYLE = """<style>
text { font: 13px system-ui, sans-serif; fill: #1d1f23 } .paper { fill: #fdfdfb } .dim { fill: #6a6f78 }
.session { font-weight: 600 }
.memory { fill: #1f6f8b } .compute { fill: #b5541c } .latency { fill: #6d7178 }
.grid { stroke: #dedfe0 } .library { stroke: #1d1f23; stroke-width: 2 }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e4e0 } .paper { fill: #16181b } .dim { fill: #9aa0a8 } .memory { fill: #5bb8d6 } .compute { fill: #eb9257 }
  .latency { fill: #9ca1a9 } .grid { stroke: #34373c } .library { stroke: #e4e4e0 } }
</style>"""


def rows_of(ladders):
    """The best rung that each session has of each ladder, in the order of the sessions."""
    rows = []
    for ladder in ladders:
        for session in {step["session"] for step in ladder.get("steps", [])}:
            own = dict(ladder, steps=[step for step in ladder["steps"] if step["session"] == session])
            best = tables.best_of(own)
            if not best or best.get("percent_of_peak", 0) < 0.05:  # a launch alone moves nothing
                continue
            share, of_library = best["percent_of_peak"], (best.get("of_library") or [0])[0]
            rows.append({"session": session, "problem": ladder["problem"], "rung": best["rung"],
                         "sizes": tables.sizes_text(ladder["sizes"]), "share": share, "of_library": of_library,
                         "library": share / of_library if of_library else None,
                         "bound": best.get("bound_by") or "latency", "peak": best.get("peak", "")})
    rows.sort(key=lambda row: (SESSIONS.index(row["session"]), row["problem"], row["sizes"]))
    return rows


def picture(device, rows):
    width, height = LABEL + BARS + RIGHT, HEAD + ROW * len(rows) + 10
    place = lambda share: LABEL + BARS * min(share, 110) / 110  # noqa: E731
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
           f'height="{height}" role="img" aria-label="percent of peak of the best rung of every ladder">', STYLE,
           f'<rect class="paper" width="{width}" height="{height}"/>',
           f'<text x="{LABEL}" y="14" class="dim">percent of peak, {html.escape(device)}; '
           "│ the library</text>"]
    for share in (0, 25, 50, 75, 100):
        out.append(f'<line class="grid" x1="{place(share):.1f}" y1="{HEAD - 8}" x2="{place(share):.1f}" '
                   f'y2="{height - 8}"/>')
        out.append(f'<text class="dim" x="{place(share):.1f}" y="{HEAD - 12}" text-anchor="middle">{share}</text>')
    last = None
    for i, row in enumerate(rows):
        top = HEAD + ROW * i
        if row["session"] != last:
            out.append(f'<text class="session" x="4" y="{top + 15}">{row["session"]}</text>')
            last = row["session"]
        out.append(f'<g><title>{row["problem"]}, {row["rung"]}, {row["sizes"]}: {row["share"]:.1f} % of '
                   f'{html.escape(row["peak"])}</title>')
        out.append(f'<text x="34" y="{top + 15}">{row["problem"]}</text>')
        out.append(f'<rect class="{row["bound"]}" x="{LABEL}" y="{top + 3}" '
                   f'width="{place(row["share"]) - LABEL:.1f}" height="{ROW - 7}" rx="2"/>')
        if row["library"]:
            x = place(row["library"])
            out.append(f'<line class="library" x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + ROW - 2}"/>')
        out.append(f'<text x="{LABEL + BARS + 6}" y="{top + 15}">{row["share"]:.1f} %</text></g>')
    return "\n".join(out + ["</svg>"]) + "\n"


def table(rows):
    lines = ["| session | ladder | best rung | at | of peak | of the library | the peak |", "|" + "---|" * 7]
    for row in rows:
        library = f"{100 * row['of_library']:.1f} %" if row["of_library"] else ""
        lines.append(f"| {row['session']} | {row['problem']} | {row['rung']} | {row['sizes']} | "
                     f"{row['share']:.1f} % | {library} | {row['peak']} |")
    return "\n".join(lines)


def pages():
    """File → content, for every file that this script owns."""
    parts = ["""# The yardstick

What percent of the peak does the best kernel of each session reach? A bar shows the best rung that a
session has of a ladder, the mark the library in the same run. Blue bars are bound by memory, orange ones by
arithmetic, grey ones by latency. The peak is that of the data sheet for the unit that bounds the kernel. A
bar does not say that a kernel could be made faster: a device copy reaches about 90 % of the bandwidth.

`capstone ladder NAME --recorded DEVICE --html FILE` draws all rungs of one ladder. This page is written by
`scripts/docs/yardstick.py` from the committed results; a ladder without one is not shown.
"""]
    files = {}
    for device, ladders in tables.Results(ROOT).devices:
        rows = rows_of(ladders)
        if not rows:
            continue
        name = "yardstick-" + device.replace("NVIDIA ", "").replace(" ", "-").lower() + ".svg"
        files[IMAGES / name] = picture(device, rows)
        parts.append(f"## {device}\n\n![Percent of peak of every ladder on {device}](../images/{name})\n\n"
                     f"{table(rows)}\n")
    files[PAGE] = "\n".join(parts)
    return files


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for path, text in pages().items():
        if path.exists() and path.read_text() == text:
            continue
        stale.append(str(path.relative_to(ROOT)))
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    if stale:
        print(("out of date: " if check else "wrote ") + ", ".join(stale))
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
