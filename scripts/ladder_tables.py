#!/usr/bin/env python3
"""Writes the measured tables of the READMEs from the committed results of `capstone ladder --record`.

scripts/ladder_tables.py [--check] [--root FOLDER]

Reads reference_kernels/results/*.json, results/published/*.json (recorded with --published),
results/languages/*.json (ladders of languages), and, for the
comparison with PyTorch, tests/gpu/records/*/pytorch.json. Writes, between `<!-- measured -->` and `<!-- end of measured -->`, the
table of every ladder's README, the overview in reference_kernels/README.md, and the measured values in
docs/reference/handbook_numbers.md. A rung that the results lack is "not measured"; a rung whose source has
changed since is marked. --check writes nothing and exits 1 if a file would change. Exit code 2: a file or a
marker is missing.
"""
import argparse
import hashlib
import json
import pathlib
import re
import statistics
import sys

BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"


def fail(text):
    print(f"error: {text}", file=sys.stderr)
    sys.exit(2)


def time_text(ms):
    for unit, factor in (("s", 1e-3), ("ms", 1), ("µs", 1e3)):
        if ms * factor >= 1:
            return f"{ms * factor:.3g} {unit}" if ms * factor < 1000 else f"{ms * factor:.0f} {unit}"
    return f"{ms * 1e6:.3g} ns"


def percent(value):
    return f"{value:.1f} %" if value else "n/a"


def code_digest(path):
    """The digest described in harness/analysis/ladder/ladder.h: comment lines and empty lines do
    not count."""
    comment = "#" if path.suffix == ".py" else "//"
    lines = [line for line in path.read_text().splitlines()
             if line.strip() and not line.strip().startswith(comment)]
    return hashlib.sha256("".join(line + "\n" for line in lines).encode()).hexdigest()


def sizes_text(sizes):
    return " ".join(f"{name}={value}" for name, value in sizes.items())


class Results:
    def __init__(self, root):
        self.devices = self._read(root / "reference_kernels/results")
        self.published = self._read(root / "reference_kernels/results/published")
        self.languages = self._read(root / "reference_kernels/results/languages")

    @staticmethod
    def _read(folder):
        devices = []
        for path in sorted(folder.glob("*.json")):
            data = json.loads(path.read_text())
            if data.get("schema") != 1:
                fail(f"{path}: the results were written by another version of capstone; record them again")
            devices.append((data["device"], data["ladders"]))
        return devices

    def of(self, problem):
        """Ladders of a problem on every device, the tool's own size first."""
        return [(device, ladder) for device, ladders in self.devices for ladder in ladders
                if ladder["problem"] == problem]


def is_compute(ladder):
    """The same as Ladder::compute_bound(): which limit the column "of peak" refers to."""
    for step in ladder.get("steps", []):
        if "ms" in step and step.get("bound_by"):
            return step["bound_by"] == "compute"
    return ladder["bytes"] > 0 and ladder["flops"] / ladder["bytes"] > 50


def figure(ladder, ms):
    return f"{ladder['flops'] / ms / 1e9:.2f}" if is_compute(ladder) else f"{ladder['bytes'] / ms / 1e6:.0f}"


def copy_percent(ladder, ms):
    copy = ladder.get("copy_bytes_per_second", 0)
    return 100 * ladder["bytes"] / ms * 1e3 / copy if copy else 0


def best_of(ladder):
    timed = [step for step in ladder.get("steps", []) if "ms" in step and step["gate_one"] == "PASS"]
    return min(timed, key=lambda step: step["ms"][0]) if timed else None


def ladder_table(ladder, rungs):
    """One table: the rungs that the folder holds now, each with its recorded result."""
    compute = is_compute(ladder)
    recorded = {step["rung"]: step for step in ladder.get("steps", [])}
    dirty = any("dirty_ms" in step for step in ladder.get("steps", []))
    sustained = any("sustained_ms" in step for step in ladder.get("steps", []))
    head = (["rung", "time", "TFLOP/s" if compute else "GB/s", "of peak"]
            + ([] if compute else ["of a copy"]) + ["of the library"]
            + (["dirty cache", "of the library, dirty"] if dirty else [])
            + (["TFLOP/s sustained" if compute else "GB/s sustained"] if sustained else [])
            + ["over the last"])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    below = None
    for rung in rungs:
        step = recorded.get(rung.stem)
        if step is None:
            lines.append(f"| {rung.stem} | not measured |" + " |" * (len(head) - 2))
            continue
        if "ms" not in step:
            lines.append(f"| {rung.stem} | no time: {step.get('trouble') or step['gate_one']} |"
                         + " |" * (len(head) - 2))
            continue
        ms = step["ms"][0]
        changed = code_digest(rung) != step["code_sha256"]
        cells = [rung.stem + (" (of an earlier version)" if changed else ""), time_text(ms),
                 figure(ladder, ms), percent(step.get("percent_of_peak"))]
        cells += [] if compute else [percent(copy_percent(ladder, ms))]
        cells.append(percent(100 * step["of_library"][0]))
        if dirty:
            cells += ([time_text(step["dirty_ms"][0]), percent(100 * step["dirty_of_library"][0])]
                      if "dirty_ms" in step else ["", ""])
        if sustained:
            cells.append(figure(ladder, step["sustained_ms"][0]) if "sustained_ms" in step else "")
        cells.append(f"{below / ms:.2f}×" if below else "")
        lines.append("| " + " | ".join(cells) + " |")
        below = ms
    return "\n".join(lines)


def not_measured(rungs):
    """Why a ladder has no results: no GPU of the project has tcgen05."""
    if any("tcgen05." in rung.read_text(encoding="utf-8") for rung in rungs):
        return "emulated from the ISA; never run on hardware here"
    return "not measured"


def ladder_section(results, problem, rungs):
    parts = []
    for device, ladder in results.of(problem):
        note = (f"{device}, driver {ladder['driver']}, {ladder['time'][:10]}, capstone {ladder['tool']}; "
                f"{sizes_text(ladder['sizes'])}; cold L2, short bursts.")
        if ladder.get("library_ms"):
            note += f" The library: {ladder['library']}, {time_text(ladder['library_ms'])}"
            if ladder.get("library_dirty_ms"):
                note += f", with a dirty cache {time_text(ladder['library_dirty_ms'])}"
            if ladder.get("library_sustained_ms"):
                unit = "TFLOP/s" if is_compute(ladder) else "GB/s"
                note += f", sustained {figure(ladder, ladder['library_sustained_ms'])} {unit}"
            note += "."
        if ladder.get("copy_bytes_per_second"):
            note += f" A device copy in the same run: {ladder['copy_bytes_per_second'] / 1e12:.2f} TB/s."
        parts.append(f"{note}\n\n{ladder_table(ladder, rungs)}")
    parts += [table for device, ladders in results.published
              if (table := over_sizes_table(device, [x for x in ladders if x["problem"] == problem], rungs))]
    if parts:
        return "\n\n".join(parts)
    said = not_measured(rungs)
    said = "Not measured yet" if said == "not measured" else said[0].upper() + said[1:]
    return f"{said}: no results are committed for this ladder."


def languages_section(results, name, rungs):
    """A ladder of languages on each device: what was written and paid, next to what it gives."""
    parts = []
    for device, ladder in [(d, x) for d, ladders in results.languages for x in ladders
                           if x["problem"] == name]:
        own = {rung.stem: rung for rung in rungs}
        lines = [f"{device}, driver {ladder['driver']}, {ladder['time'][:10]}, capstone {ladder['tool']}; "
                 f"{sizes_text(ladder['sizes'])}; cold L2, short bursts. The library: {ladder['library']}, "
                 f"{time_text(ladder['library_ms'])}.", "",
                 "| rung | language | lines | tokens | compile | launch | time | "
                 f"{'TFLOP/s' if is_compute(ladder) else 'GB/s'} | of the library |", "|" + "---|" * 9]
        for step in ladder["steps"]:
            rung = own.get(step["rung"])
            changed = rung and code_digest(rung) != step["code_sha256"]
            cells = [step["rung"] + (" (of an earlier version)" if changed else ""), step["language"],
                     str(step["lines"]), str(step["tokens"])]
            if "ms" in step:
                ms = step["ms"][0]
                cells += [f"{step['compile_seconds']:.2f} s" if step["compile_seconds"] else "",
                          time_text(step["launch_ms"]) if step["launch_ms"] else "", time_text(ms),
                          figure(ladder, ms), percent(100 * step["of_library"][0])]
            else:
                cells += [f"no time: {step.get('trouble') or step['gate_one']}", "", "", "", ""]
            lines.append("| " + " | ".join(cells) + " |")
        missing = sorted(set(own) - {step["rung"] for step in ladder["steps"]})
        lines += [f"| {stem} | not measured |" + " |" * 7 for stem in missing]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) if parts else "Not measured yet: no results are committed for this ladder."


def over_sizes_table(device, ladders, rungs):
    """One line for each published size: the library's time, and each recorded rung's share of it."""
    recorded = [r for r in rungs if any(s["rung"] == r.stem for x in ladders for s in x["steps"])]
    if not recorded:
        return ""
    shares = {rung.stem: [] for rung in recorded}
    lines = [f"At the sizes that the problem publishes: {device}, {min(x['time'] for x in ladders)[:10]}, "
             f"capstone {ladders[0]['tool']}. The library: {ladders[0]['library']}. A share is of the library "
             "in the run that judged the rung.", "",
             "| sizes | library | " + " | ".join(r.stem for r in recorded) + " |",
             "|---|---|" + "---|" * len(recorded)]
    for ladder in ladders:
        steps = {step["rung"]: step for step in ladder["steps"] if "ms" in step}
        cells = []
        for rung in recorded:
            step = steps.get(rung.stem)
            if step:
                shares[rung.stem].append(step["of_library"][0])
            cells.append(percent(100 * step["of_library"][0]) if step else "no time")
        lines.append(f"| {sizes_text(ladder['sizes'])} | {time_text(ladder['library_ms'])} | "
                     + " | ".join(cells) + " |")
    means = [percent(100 * statistics.geometric_mean(values)) for values in shares.values()]
    lines.append(f"| geometric mean of {len(ladders)} | | " + " | ".join(means) + " |")
    return "\n".join(lines)


def overview(results, ladders):
    lines = ["| ladder | session | rungs | measured on | best rung | time | TFLOP/s or GB/s | "
             "of peak | of the library |", "|" + "---|" * 9]
    for (session, problem), rungs in ladders.items():
        link = f"[{problem}]({rungs[0].parent.parent.name}/{problem})"
        measured = results.of(problem)
        if not measured:
            lines.append(f"| {link} | {session} | {len(rungs)} | {not_measured(rungs)} | | | | | |")
        for device, ladder in measured:
            best = best_of({
                **ladder, "steps": [s for s in ladder.get("steps", [])
                                    if s["rung"] in {r.stem for r in rungs}]})
            if best is None:
                lines.append(f"| {link} | {session} | {len(rungs)} | {device}, "
                             f"{sizes_text(ladder['sizes'])} | none has a time | | | | |")
                continue
            ms = best["ms"][0]
            unit = "TFLOP/s" if is_compute(ladder) else "GB/s"
            lines.append(f"| {link} | {session} | {len(rungs)} | {device}, {sizes_text(ladder['sizes'])} | "
                         f"{best['rung']} | {time_text(ms)} | {figure(ladder, ms)} {unit} | "
                         f"{percent(best.get('percent_of_peak'))} | {percent(100 * best['of_library'][0])} |")
    return "\n".join(lines)


def against_pytorch(root):
    """The last rung of each problem against PyTorch, one run each: tests/gpu/records/<device>/pytorch.json,
    written by scripts/gpu_record.sh."""
    lines = []
    for path in sorted(root.glob("tests/gpu/records/*/pytorch.json")):
        rows = json.loads(path.read_text())
        if not rows:
            continue
        dates = sorted({row["time"][:10] for row in rows})
        eager_label = next(a["label"] for row in rows for a in row["arms"] if a["name"] == "eager")
        torch = eager_label.split(" eager")[0]
        lines += ["",
                  f"The last rung and PyTorch, each problem in its own run on {rows[0]['device']} "
                  f"({' to '.join(sorted({dates[0], dates[-1]}))}, capstone {rows[0]['tool']}, "
                  f"{torch}); "
                  "the verdict is against eager, or the first arm where eager was not run.", "",
                  "| problem | at | kernel | time | eager | torch.compile | over eager | "
                  "over torch.compile | over other arms | verdict |", "|" + "---|" * 10]
        for row in rows:
            ms = {arm["name"]: arm["median_ms"]["point"] for arm in row["arms"]}
            human = next(value for name, value in ms.items() if name.startswith("human"))
            pytorch = [ms.get(name) for name in ("eager", "compile")]
            times = [time_text(value) if value else "n/a" for value in pytorch]
            ratios = [f"{value / human:.2f}×" if value else "n/a" for value in pytorch]
            others = ", ".join(f"{name} {value / human:.2f}×" for name, value in ms.items()
                               if name.startswith(("sdpa-", "lib:")))
            lines.append(f"| {row['problem']} | {sizes_text(row['sizes'])} | "
                         f"{row['kernel'].removeprefix('reference kernel ')} | {time_text(human)} | "
                         f"{' | '.join(times + ratios)} | {others} | "
                         f"{row['gate_two'].upper()} |")
    return "\n".join(lines)


# The values of each number that recorded ladders give: a sentence, or None if they do not have it.
def library_share(results, problem, which):
    found = []
    for device, ladder in results.of(problem):
        step = (best_of(ladder) if which == "best"
                else next((s for s in ladder.get("steps", []) if "ms" in s), None))
        if step:
            found.append(f"{100 * step['of_library'][0]:.1f} % ({device}, {step['rung']})")
    return "; ".join(found) or None


def mountain(results):
    return "; ".join(f"{1 / step['of_library'][0]:.0f}× ({device})"
                     for device, ladder in results.of("sgemm") for step in ladder.get("steps", [])[:1]
                     if "ms" in step) or None


def peak_share(results, problem):
    return "; ".join(f"{first['percent_of_peak']:.1f} → {best['percent_of_peak']:.1f} % of {best['peak']} "
                     f"on {device}: {first['rung']} and {best['rung']} of {problem}"
                     for device, ladder in results.of(problem)
                     if (best := best_of(ladder)) and "ms" in (first := ladder["steps"][0])) or None


MEASURED = {
    "93.7 %": lambda r: library_share(r, "sgemm", "best"),
    "1 % → 94 %": lambda r: " → ".join(
        x for x in (library_share(r, "sgemm", "first"), library_share(r, "sgemm", "best")) if x) or None,
    "50–100×": mountain,
    "101 %": lambda r: library_share(r, "sgemm", "best"),
    "107 %": lambda r: library_share(r, "gemm_bf16", "best"),
    "10 % → 90 %": lambda r: peak_share(r, "sgemm"),
}


def numbers(results, text):
    """The line "Measured here" below each heading of a number."""
    def fill(match):
        measure = MEASURED.get(match.group(1))
        said = measure(results) if measure else None
        return match.group(0) if measure is None else (
            f"## {match.group(1)}{match.group(2)}- **Measured here**: {said or 'not measured'}\n")
    return re.sub(r"## ([^\n]+)(\n(?:(?!## )[^\n]*\n)*?)- \*\*Measured here\*\*:[^\n]*\n", fill, text)


def with_section(path, body):
    if not path.exists():
        fail(f"{path} is missing; it must contain {BEGIN} and {END}")
    text = path.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        fail(f"{path} must contain {BEGIN} and {END} once each")
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{body}\n{END}{rest.split(END)[1]}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    root = arguments.root
    results = Results(root)
    ladders = {}
    for rung in sorted((root / "reference_kernels").glob("*_*/*/[0-9][0-9]_*.cu")):
        if (rung.parent / "ladder.yaml").exists():  # its problem is another folder's
            continue
        ladders.setdefault((rung.parent.parent.name.split("_")[0], rung.parent.name), []).append(rung)
    wanted = {}
    for (_, problem), rungs in ladders.items():
        readme = rungs[0].parent / "README.md"
        wanted[readme] = with_section(readme, ladder_section(results, problem, rungs))
    for definition in sorted((root / "reference_kernels").glob("*_*/*/ladder.yaml")):
        rungs = [path for path in sorted(definition.parent.glob("[0-9][0-9]_*"))
                 if path.suffix in (".py", ".cu")]
        readme = definition.parent / "README.md"
        wanted[readme] = with_section(readme, languages_section(results, definition.parent.name, rungs))
    readme = root / "reference_kernels/README.md"
    wanted[readme] = with_section(
        readme, "\n".join(part for part in (overview(results, ladders), against_pytorch(root)) if part))
    for handbook in filter(pathlib.Path.exists, [
            root / "docs/reference/handbook_numbers.md", root / "docs/handbook_numbers.md"]):
        wanted[handbook] = numbers(results, handbook.read_text())
    stale = [path for path, text in wanted.items() if path.read_text() != text]
    for path in stale:
        if arguments.check:
            print(f"{path.relative_to(root)} does not match the results; run scripts/ladder_tables.py",
                  file=sys.stderr)
        else:
            path.write_text(wanted[path])
            print(path.relative_to(root))
    sys.exit(1 if stale and arguments.check else 0)


if __name__ == "__main__":
    main()
