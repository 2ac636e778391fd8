#!/usr/bin/env python3
"""Writes docs/reference/attention_over_length.md and its drawing from the committed records.

scripts/attention_over_length.py [--check] [--root FOLDER]

Reads tests/gpu/records/*/pytorch.json, which scripts/gpu_record.sh makes, and the ledgers *attention*.jsonl
in the same folders. For attention and causal_attention it takes the rows at d = 128 with 16384 tokens and 16 heads of a batch entry, for lengths of 512 to 16384: the
published sizes n512 to n16384 of these problems. What the records lack is "not measured"; a device without any
such row is left out. --check writes nothing and exits 1 if a file would change.
"""
import argparse
import json
import pathlib
import sys

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
PANELS = (("attention", "All keys", lambda h, n, d: 4 * h * n * n * d),
          ("causal_attention", "Causal", lambda h, n, d: 2 * h * n * (n + 1) * d))
# arm, heading of the table, label in the drawing, colour on light and on dark ground, dashes, shape of the marks
ARMS = (("human", "the last rung", "rung", "#b3261e", "#ff8a80", "", "circle"),
        ("lib:fa3", "FlashAttention-3", "FA3", "#1a5fb4", "#82b1ff", "", "square"),
        ("sdpa-cudnn", "cuDNN (SDPA)", "cuDNN", "#2e7d32", "#81c995", "", "triangle"),
        ("sdpa-flash", "FlashAttention-2 (SDPA)", "FA2", "#8e4ec6", "#d0a8ff", "9 5", "square"),
        ("compile", "torch.compile", "compile", "#9a6700", "#f2c14e", "9 5", "triangle"),
        ("eager", "eager", "eager", "#57606a", "#b6bec9", "2 5", "circle"))
WIDTH, PANEL_HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 520, 84, 140, 84, 78


def rows_in(folder):
    """The measurements of one device: rows of pytorch.json, and those of ledgers in the same form."""
    rows = json.loads((folder / "pytorch.json").read_text())
    for ledger in sorted(folder.glob("*attention*.jsonl")):
        for record in map(json.loads, ledger.read_text().splitlines()):
            body = record["body"]
            if record["kind"] == "measurement" and body.get("measured"):
                rows.append({"problem": body["problem_id"], "kernel": body["reason"], "time": record["time"],
                             "device": body["environment"]["device"], **body["measured"]})
    return rows


def heads(n):
    return 16 * 16384 // n


def measured(rows, problem, flops):
    """{arm: {n: TFLOP/s}} of the newest row at each length."""
    values = {}
    for row in sorted(rows, key=lambda row: row["time"]):
        sizes = row.get("sizes") or {}
        n = sizes.get("n")
        if row["problem"] != problem or n not in LENGTHS or sizes != {"h": heads(n), "n": n, "d": 128}:
            continue
        for arm in row["arms"]:
            name = "human" if arm["name"].startswith("human") else arm["name"]
            values.setdefault(name, {})[n] = flops(heads(n), n, 128) / arm["median_ms"]["point"] / 1e9
    return values


def kernels(rows, problem):
    names = {row["kernel"].removeprefix("reference kernel ") for row in rows
             if row["problem"] == problem and (row.get("sizes") or {}).get("d") == 128}
    return ", ".join(f"`{name}`" for name in sorted(names))


def table(values):
    lines = ["| n | heads | " + " | ".join(arm[1] for arm in ARMS) + " |", "|" + "---:|" * (len(ARMS) + 2)]
    for n in LENGTHS:
        cells = [f"{values[arm[0]][n]:.0f}" if n in values.get(arm[0], {}) else "not measured" for arm in ARMS]
        lines.append(f"| {n} | {heads(n)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def mark(shape, x, y, name):
    if shape == "circle":
        return f'<circle class="{name}" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
    if shape == "square":
        return f'<rect class="{name}" x="{x - 5.5:.1f}" y="{y - 5.5:.1f}" width="11" height="11"/>'
    return f'<path class="{name}" d="M{x:.1f} {y - 7:.1f}l7 12.5h-14z"/>'


def labels(ends, low, high):
    """Moves the labels at the ends of the lines apart: [(y of the text, y of the line's end, arm)]."""
    placed = []
    for y, arm in sorted(ends, key=lambda end: end[0]):
        placed.append([max(y, placed[-1][0] + 25 if placed else low), y, arm])
    if placed and placed[-1][0] > high:
        placed[-1][0] = high
        for above, below in zip(reversed(placed[:-1]), reversed(placed)):
            above[0] = min(above[0], below[0] - 25)
    return placed


def panel(title, values, top):
    inner_left, inner_right = LEFT, WIDTH - RIGHT
    inner_top, inner_bottom = top + TOP, top + PANEL_HEIGHT - BOTTOM
    most = max((value for line in values.values() for value in line.values()), default=700)
    step = 200 if most > 500 else 100
    limit = (int(most / step) + 1) * step
    x_of = {n: inner_left + 20 + i * (inner_right - inner_left - 40) / (len(LENGTHS) - 1)
            for i, n in enumerate(LENGTHS)}

    def y_of(value):
        return inner_bottom - value / limit * (inner_bottom - inner_top)

    out = [f'<text class="title" x="{inner_left}" y="{top + 40}">{title}</text>',
           f'<text class="small" x="{inner_left}" y="{top + 68}">TFLOP/s</text>']
    for value in range(0, limit + 1, step):
        y = y_of(value)
        out.append(f'<path class="{"axis" if value == 0 else "grid"}" d="M{inner_left} {y:.1f}H{inner_right}"/>')
        out.append(f'<text class="small" text-anchor="end" x="{inner_left - 10}" y="{y + 7:.1f}">{value}</text>')
    for n, x in x_of.items():
        name = f"{n // 1024}k" if n >= 1024 else str(n)
        out.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{inner_bottom + 30}">{name}</text>')
    out.append(f'<text class="small" text-anchor="middle" x="{(inner_left + inner_right) / 2}" '
               f'y="{inner_bottom + 60}">sequence length n</text>')
    ends = []
    for arm, _, label, _, _, _, shape in reversed(ARMS):
        points = [(x_of[n], y_of(value)) for n, value in sorted(values.get(arm, {}).items())]
        if not points:
            continue
        name = label.lower()
        out.append(f'<path class="line {name}" d="M' + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) + '"/>')
        out += [mark(shape, x, y, f"mark {name}") for x, y in points]
        ends.append((points[-1][1], label))
    for y, _, label in labels(ends, inner_top, inner_bottom):
        out.append(f'<text class="label {label.lower()}" x="{inner_right + 6}" y="{y + 7:.1f}">{label}</text>')
    if not ends:
        out.append(f'<text class="small" text-anchor="middle" x="{(inner_left + inner_right) / 2}" '
                   f'y="{(inner_top + inner_bottom) / 2}">not measured</text>')
    return out


def drawing(panels):
    height = PANEL_HEIGHT * len(panels)

    def colours(index):
        return "".join(f".{arm[2].lower()}{{--c:{arm[3 + index]}}}" for arm in ARMS)

    dashes = "".join(f".line.{arm[2].lower()}{{stroke-dasharray:{arm[5]}}}" for arm in ARMS if arm[5])
    style = (":root{--ground:#fff;--ink:#1f2328;--soft:#d0d7de}" + colours(0) +
             "@media (prefers-color-scheme:dark){:root{--ground:#1b1f27;--ink:#e6edf3;--soft:#3d444d}" +
             colours(1) + "}"
             "text{font-family:system-ui,'DejaVu Sans',sans-serif;fill:var(--ink)}"
             ".title{font-size:28px;font-weight:600}.small{font-size:22px}"
             ".label{font-size:23px;font-weight:600;fill:var(--c)}"
             ".grid{stroke:var(--soft);stroke-width:1.5}.axis{stroke:var(--ink);stroke-width:2}"
             ".line{fill:none;stroke:var(--c);stroke-width:3.5;stroke-linejoin:round}"
             ".line.rung{stroke-width:5}" + dashes +
             ".mark{fill:var(--c);stroke:var(--ground);stroke-width:1.5}.ground{fill:var(--ground)}")
    body = [line for i, (title, values) in enumerate(panels)
            for line in panel(title, values, i * PANEL_HEIGHT)]
    said = "; ".join(f"{title}: " + (", ".join(
        f"{arm[2]} {values[arm[0]][max(values[arm[0]])]:.0f} TFLOP/s at n = {max(values[arm[0]])}"
        for arm in ARMS if values.get(arm[0])) or "not measured") for title, values in panels)
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                      f'width="{WIDTH}" height="{height}" role="img" aria-labelledby="name">',
                      f'<title id="name">Attention over the sequence length. {said}.</title>',
                      f"<style>{style}</style>",
                      f'<rect class="ground" width="{WIDTH}" height="{height}"/>', *body, "</svg>", ""])


def page(devices):
    lines = ["# Attention over the sequence length", "",
             "<!-- Made by scripts/attention_over_length.py from tests/gpu/records. -->", "",
             "How fast is attention, and what does the length do to it? Every point has the same number of tokens,",
             "16384, and 16 heads of 128 numbers (d), in fp16: at n = 512 that is a batch of 32, at n = 16384 of one.",
             "Products grow with n, so short sequences are the hard ones: a tile of queries has few keys to hide the",
             "start and the end of its work behind. The naive chain is bound by its matrix of scores at every length.",
             "", "TFLOP/s count what has to be computed: 4 h n² d, or 2 h n (n + 1) d if causal. Times are medians with a",
             "cold L2 cache; all arms of a row run in the same blocks.", ""]
    for device, rows in devices:
        lines += [f"## {device}", ""]
        name = "attention_over_length_" + device.lower().replace("nvidia ", "").replace(" ", "_") + ".svg"
        lines += [f"![TFLOP/s over n for the arms of the tables](../images/{name})", ""]
        for problem, title, flops in PANELS:
            run = kernels(rows, problem)
            lines += [f"### {title}", "", f"Problem `{problem}`" + (f"; the last rung: {run}." if run else "."), "",
                      table(measured(rows, problem, flops)), ""]
    if not devices:
        lines += ["Not measured yet: no record has these lengths.", ""]
    lines += ["## Record it", "", "On a machine with a GPU, PyTorch and, for that arm, FlashAttention-3:", "",
              "```console", "$ scripts/gpu_record.sh records capstone 2 "
              "'^(causal_)?attention/(n|h100_table_d128|long)'", "```", "",
              "Add the rows of `records/pytorch.json` to those of the device under `tests/gpu/records`, and run",
              "`scripts/attention_over_length.py`. The test of the tables says if that was forgotten."]
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    devices = []
    for path in sorted(arguments.root.glob("tests/gpu/records/*/pytorch.json")):
        rows = rows_in(path.parent)
        if any(measured(rows, problem, flops) for problem, _, flops in PANELS):
            devices.append((rows[0]["device"], rows))
    wanted = {arguments.root / "docs/reference/attention_over_length.md": page(devices)}
    for device, rows in devices:
        name = "attention_over_length_" + device.lower().replace("nvidia ", "").replace(" ", "_") + ".svg"
        wanted[arguments.root / "docs/images" / name] = drawing(
            [(title, measured(rows, problem, flops)) for problem, title, flops in PANELS])
    stale = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if arguments.check:
            print(f"{path.relative_to(arguments.root)} does not match the records; "
                  "run scripts/attention_over_length.py", file=sys.stderr)
        else:
            path.write_text(wanted[path])
            print(path.relative_to(arguments.root))
    sys.exit(1 if stale and arguments.check else 0)


main()
