"""examine.py FILE OUT.json --memory BYTES [--host-memory BYTES] [--parallel N] [--seconds S]

Runs a file in KernelBench's form on the CPU and finds what a problem definition needs: which constants are
sizes, the shapes of all tensors as formulas over them, how values are drawn, smaller sizes to check at, and
sizes that fit into BYTES of a GPU's memory. The file is untrusted: this script runs in a sandbox, and its
output is a proposal that the caller checks. Exit codes: 3: OUT.json holds {"refused": why}; 4: PyTorch cannot
be imported.
"""

import argparse
import itertools
import json
import os
import random
import resource
import sys
import time
import traceback

sys.dont_write_bytecode = True

try:
    import torch  # noqa: E402
except Exception as problem:  # a missing shared library raises OSError
    print(f"{type(problem).__name__}: {problem}".splitlines()[0], file=sys.stderr)
    sys.exit(4)

from constants import module_at  # noqa: E402
from cost import cost_of, fitting, flops_formula, grouped_bytes, needed, tensor_bytes  # noqa: E402
from model import state_of  # noqa: E402
from run import File, Refused, Run, counted, one_line  # noqa: E402
from signature import argument_names, signature_of  # noqa: E402
from sizes import QUICK, SLOW, Sizes  # noqa: E402

CHECK_FLOPS, CHECK_BYTES = 5e7, 64e6  # upper limits for the hidden sizes that the judge draws


def degenerate_notes(run):
    notes = []
    dropouts = [name for name, module in run.model.named_modules()
                if type(module).__name__.startswith("Dropout") and getattr(module, "p", 0) > 0]
    if dropouts:
        notes.append(f"Dropout ({', '.join(dropouts[:3])}) is off here, as in inference; KernelBench keeps "
                     "it on, so its own check compares random numbers")
    if any("running_mean" in name for name in run.state()):
        notes.append("BatchNorm uses its running statistics here, as in inference; KernelBench keeps it in "
                     "training mode")
    for i, y in enumerate(run.outputs):
        if y.numel() > 1 and bool((y == y.flatten()[0]).all()):
            notes.append(f"degenerate: output {i} is the same number everywhere")
        if y.is_floating_point() and not bool(torch.isfinite(y).all()):
            notes.append(f"degenerate: output {i} holds infinities or NaN")
    if any(isinstance(x, torch.Tensor) and x.dtype in (torch.int32, torch.int64) for x in run.inputs):
        notes.append("it has integer inputs; they stay integers here (KernelBench's evaluation casts them "
                     "to floating point)")
    return notes


def examine(options):
    file = File(options.file)
    deadline = time.monotonic() + options.seconds
    sizes = Sizes(file, deadline)
    sizes.settle()
    run = Run(file, sizes.complete(sizes.base))
    if run.changed:
        raise Refused("forward() changes its own input "
                      f"({argument_names(run.model, len(run.inputs))[run.changed[0]]}), "
                       "which a judged kernel must not do")
    again = run.model(*run.inputs)
    again = list(again) if isinstance(again, (tuple, list)) else [again]
    for a, b in zip(run.outputs, again):
        if isinstance(a, torch.Tensor) and not torch.allclose(
                a.double(), b.double(), rtol=1e-3, atol=1e-5, equal_nan=True):
            raise Refused("forward() gives different results for the same inputs when it is called again "
                          "(random numbers, or kept state), so there is no correct answer to compare with")
    signature, notes = signature_of(run, sizes, {})

    # Counts of work at the base sizes and at other values.
    def count_at(where):
        fresh = Run(file, sizes.complete(where))
        _, count = counted(lambda: fresh.model(*fresh.before))
        # Every input is read at least once and every output is written, whatever is computed.
        least = max(sum(t.numel() for t in side if isinstance(t, torch.Tensor))
                    for side in (fresh.inputs, fresh.outputs))
        return count.products if sum(count.products) >= least else [least], count.largest

    products, largest = count_at(sizes.base)
    elsewhere = {}
    for symbol in sizes.symbols:
        value = max(v for v, _ in sizes.points[symbol])
        elsewhere[symbol] = value, count_at(dict(sizes.base, **{symbol: value}))[0]
    flops = flops_formula(sizes, products, elsewhere)
    intermediates = largest / max(1, tensor_bytes(signature, sizes.base))

    measure = fitting(signature, sizes, options.memory, options.parallel, intermediates)
    if measure is None:
        whole = needed(signature, {s: sizes.original[s] for s in sizes.symbols}, options.parallel,
                       intermediates)
        raise Refused(f"a run takes about {whole / 1e9:.1f} GB of GPU memory, and its sizes cannot be made "
                      "smaller")
    # Values of parameters from the model at the measured sizes, if that model can be created quickly.
    if measure != sizes.base and tensor_bytes(signature, measure, "parameter") < 1.5e9:
        torch.manual_seed(0)
        module = module_at(file.tree, file.path, file.overrides(sizes.complete(measure)))
        model = module.Model(*module.get_init_inputs())
        signature, _ = signature_of(run, sizes, state_of(model))

    base = {s: sizes.base[s] for s in sizes.symbols}
    check = [base]
    for pick in (lambda s: base[s] + 1, lambda s: 2 * base[s], lambda s: base[s] - 1):
        other = {s: pick(s) if pick(s) in sizes.values[s] else base[s] for s in sizes.symbols}
        if other not in check and len(check) < (3 if run.seconds < SLOW else 1) and sizes.works(other):
            check.append(other)
    small = cost_of(flops, base) <= CHECK_FLOPS and tensor_bytes(signature, base) <= CHECK_BYTES
    vary = {s: sorted(set(sizes.values[s])) for s in sizes.symbols}
    combinations = list(itertools.islice(itertools.product(*vary.values()), 0, 100000))
    chance = random.Random(2)
    draws = chance.sample(combinations, min(len(combinations), 10 if run.seconds < QUICK else 3))
    if not sizes.symbols or not small or not all(sizes.works(dict(zip(vary, draw))) for draw in draws):
        vary = {}
    if not sizes.symbols:
        notes.append("none of its constants can be varied: every case has the timed size")
    elif not vary:
        notes.append("hidden sizes are not drawn, only the sizes under `check` are used: other combinations "
                     "are too large for the CPU, or do not work")
    for s in sizes.symbols:
        if measure[s] != sizes.original[s]:
            notes.append(f"shrunk: {s} {sizes.original[s]} → {measure[s]}, so that a run fits "
                         f"{options.memory / 1e9:.0f} GB of GPU memory")
    return {
        "signature": signature,
        "symbols": sizes.symbols,
        "check": check,
        "vary": vary,
        "measure": measure,
        "original": {s: sizes.original[s] for s in sizes.symbols},
        "flops": flops,
        "bytes": grouped_bytes(signature),
        "notes": notes + degenerate_notes(run),
        "reference": file.constants.rewritten(file.text, sizes.symbols, sizes.ties),
        "documentation": (run.model.__class__.__doc__ or "").strip()[:1500],
        "needed_bytes": needed(signature, measure, options.parallel, intermediates),
    }


def limit_memory(size):
    """A larger allocation then raises an exception that can be reported, instead of killing the process."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + int(size), mapped + int(size)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("out")
    parser.add_argument("--memory", type=float, required=True)
    parser.add_argument("--host-memory", type=float, default=6e9)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=90)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(min(4, os.cpu_count() or 1))
    limit_memory(options.host_memory)
    code = 0
    try:
        found = examine(options)
    except Refused as why:
        found, code = {"refused": str(why)}, 3
    except ModuleNotFoundError as problem:
        found, code = {"refused": f"{one_line(problem)}; install it for {sys.executable}"}, 3
    except Exception as problem:
        found, code = {"refused": one_line(problem), "traceback": traceback.format_exc()[-8000:]}, 3
    with open(options.out, "w", encoding="utf-8") as out:
        json.dump(found, out)
    return code


if __name__ == "__main__":
    sys.exit(main())
