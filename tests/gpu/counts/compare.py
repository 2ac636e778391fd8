#!/usr/bin/env python3
"""Compares the counts of the emulator with those of Nsight Compute, kernel by kernel.

    compare.py FOLDER RECORD.json

FOLDER holds the files that scripts/gpu_counts.sh collected for each file of kernels/: NAME.emulated.json
(capstone explain --format json), NAME.raw.csv and NAME.source.csv (ncu --page raw, --page source), and
machine.json. RECORD.json is written. Exit codes: 0 every count agrees within 2 %, 1 at least one does not, 2
something is missing.
"""
import csv
import json
import pathlib
import re
import sys

ALLOWED_PERCENT = 2.0

# The hardware's counters. Some counters also count atomic operations as stores, without a result (red) or
# with one.
L1 = "l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum"
LOADS = [L1.format(what="requests", op="ld")]
STORES = [L1.format(what="requests", op=op) for op in ("st", "red", "atom")]
SECTORS = [L1.format(what="sectors", op=op) for op in ("ld", "st", "red", "atom")]
WAVEFRONTS = ["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_" + op + ".sum" for op in ("ld", "st", "atom")]
# The metrics of ncu for each executed instruction; columns of the source page.
EXECUTED, LANES = "Instructions Executed", "Predicated-On Thread Instructions Executed"
BY_INSTRUCTION = {"shared wavefronts": "L1 Wavefronts Shared", "global sectors": "L2 Theoretical Sectors Global"}
ACCESSES = {"LD", "ST", "LDG", "STG", "LDS", "STS", "ATOM", "ATOMG", "ATOMS", "RED", "REDG", "REDS"}


class Missing(Exception):
    pass


def number(text):
    text = text.replace(",", "").strip()
    return float(text) if re.fullmatch(r"-?\d+(\.\d*)?(e[+-]?\d+)?", text, re.I) else 0.0


def base_name(kernel):
    """"void transpose<32>(const float *)" -> "transpose"."""
    return kernel.split("(")[0].split("<")[0].split()[-1]


def emulated_counts(path):
    kernels = {}
    for kernel in json.loads(path.read_text())["kernels"]:
        lines = kernel["lines"]
        kernels[kernel["kernel"]] = {
            "global load requests": sum(line["loads"] for line in lines),
            "global store requests": sum(line["stores"] for line in lines),
            "global sectors": sum(line["global"]["units"] for line in lines),
            "shared wavefronts": sum(line["shared"]["units"] for line in lines),
            "active lanes": sum(line[kind]["active_lanes"] for line in lines for kind in ("global", "shared")),
        }
    return kernels


def hardware_counts(path):
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    while rows and "Kernel Name" not in rows[0]:
        rows.pop(0)
    if len(rows) < 3:
        raise Missing(f"{path.name} has no kernel")
    head, kernels = rows[0], {}
    for row in rows[2:]:  # rows[1] are the units
        if len(row) != len(head):
            continue
        values = dict(zip(head, row))
        total = lambda names: sum(number(values.get(name, "")) for name in names)
        if LOADS[0] not in values:
            raise Missing(f"{path.name} has no {LOADS[0]}")
        kernels[base_name(values["Kernel Name"])] = {
            "global load requests": total(LOADS), "global store requests": total(STORES), "global sectors": total(SECTORS),
            "shared wavefronts": total(WAVEFRONTS)}
    return kernels


def opcode(instruction):
    words = re.sub(r"^\s*@!?U?P\w+\s+", "", instruction.strip()).split()
    return words[0].split(".")[0] if words else ""


def instruction_counts(path):
    kernels, head, counts = {}, None, None
    with path.open(newline="") as file:
        for row in csv.reader(file):
            if len(row) >= 2 and row[0] == "Kernel Name":
                # ncu prints a launch more than once. Every listing is complete, so the last one is used.
                counts = kernels[base_name(row[1])] = {"active lanes": 0.0, **{name: 0.0 for name in BY_INSTRUCTION}}
                head = None
            elif "Source" in row and LANES in row:
                head = {name: row.index(name) for name in row}
            elif counts is not None and head and len(row) > head[LANES] and opcode(row[head["Source"]]) in ACCESSES:
                counts["active lanes"] += number(row[head[LANES]])
                for name, column in BY_INSTRUCTION.items():
                    counts[name] += number(row[head[column]]) if column in head else 0.0
    if not kernels:
        raise Missing(f"{path.name} names no kernel")
    return kernels


def compared(emulated, hardware, by_instruction):
    measured = {**hardware, "active lanes": by_instruction["active lanes"]}
    counters = []
    for name, ours in emulated.items():
        theirs = measured[name]
        if not ours and not theirs:
            continue
        difference = 100 * (ours - theirs) / theirs if theirs else None
        counter = {"counter": name, "emulated": ours, "measured": theirs,
                   "difference_percent": None if difference is None else round(difference, 3),
                   "agrees": difference is not None and abs(difference) <= ALLOWED_PERCENT}
        if name in BY_INSTRUCTION:
            counter["by_instruction"] = by_instruction[name]
        counters.append(counter)
    return counters


def main(folder, record):
    kernels = []
    for path in sorted(folder.glob("*.emulated.json")):
        name = path.name.removesuffix(".emulated.json")
        hardware = hardware_counts(folder / f"{name}.raw.csv")
        by_instruction = instruction_counts(folder / f"{name}.source.csv")
        for kernel, emulated in emulated_counts(path).items():
            for source in (hardware, by_instruction):
                if kernel not in source:
                    raise Missing(f"ncu has no launch of {kernel} ({name}.cu)")
            kernels.append({"file": name + ".cu", "kernel": kernel, "counters": compared(emulated, hardware[kernel], by_instruction[kernel])})
    if not kernels:
        raise Missing(f"no *.emulated.json in {folder}")
    for kernel in kernels:
        for c in kernel["counters"]:
            difference = "     -" if c["difference_percent"] is None else f"{c['difference_percent']:+6.1f}"
            aside = f"  by instruction {c['by_instruction']:.0f}" if c.get("by_instruction", c["measured"]) != c["measured"] else ""
            print(f"{'ok   ' if c['agrees'] else 'WRONG'} {kernel['kernel']:22} {c['counter']:22} {c['emulated']:10} {c['measured']:12.0f} {difference} %{aside}")
    agrees = all(c["agrees"] for kernel in kernels for c in kernel["counters"])
    document = {**json.loads((folder / "machine.json").read_text()), "allowed_percent": ALLOWED_PERCENT, "agrees": agrees, "kernels": kernels}
    record.write_text(json.dumps(document, indent=1) + "\n")
    wrong = sum(not c["agrees"] for kernel in kernels for c in kernel["counters"])
    print(f"{len(kernels)} kernels, {sum(len(k['counters']) for k in kernels)} counts, {wrong} beyond {ALLOWED_PERCENT} %: {record}")
    return 0 if agrees else 1


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    try:
        sys.exit(main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    except (Missing, OSError, KeyError, ValueError) as error:
        print(f"error: {error}\n  hint: run scripts/gpu_counts.sh again", file=sys.stderr)
        sys.exit(2)
