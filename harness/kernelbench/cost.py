"""The cost of a run: FLOPs and bytes as formulas, GPU memory, and the sizes that fit into it."""

import math

from formulas import evaluate, extent_of

WIDTHS = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u8": 1}  # [B]
CONTEXTS = 4 * 0.5e9 + 2 * 128e6      # [B] of the processes on the GPU, and of the buffer that flushes the
                                      # largest L2


def tensor_bytes(signature, sizes, role=None):
    return sum(WIDTHS[p["dtype"]] * extent_of(p["shape"], sizes) for p in signature
               if "shape" in p and (role is None or p["role"] == role))


def needed(signature, sizes, parallel, intermediates):
    """[B] of GPU memory: tensors, expected outputs, and what PyTorch allocates in each of the concurrent
    processes."""
    everything, outputs = tensor_bytes(signature, sizes), tensor_bytes(signature, sizes, "output")
    return everything + outputs + parallel * (outputs + 2 * intermediates * everything) + CONTEXTS


def fitting(signature, sizes, memory, parallel, intermediates):
    """The original sizes, halved until a run fits into the memory: batches first, then always the largest
    size."""
    now = {s: sizes.original[s] for s in sizes.symbols}
    while needed(signature, now, parallel, intermediates) > memory:
        for symbol in sorted(sizes.symbols, key=lambda s: ("batch" not in s.lower(), -now[s])):
            smaller = dict(now, **{symbol: now[symbol] // 2})
            if now[symbol] % 2 == 0 and smaller[symbol] >= sizes.base[symbol] and (
                    tensor_bytes(signature, smaller) < tensor_bytes(signature, now)):
                now = smaller
                break
        else:
            return None
    return now


def flops_formula(sizes, base, elsewhere):
    """Σ c · Π s^k, a term for each kind of product, fitted to its FLOPs at the base and at one other value of
    each symbol. Exponents are whole, rounded down. `elsewhere`: symbol → (value, FLOPs). All lists are in the
    order of execution."""
    if any(len(counts) != len(base) for _, counts in elsewhere.values()):
        base, elsewhere = [sum(base)], {s: (value, [sum(counts)]) for s, (value, counts) in elsewhere.items()}
    terms = {}
    for i, here in enumerate(base):
        powers = {}
        for symbol, (value, counts) in elsewhere.items():
            ratio = math.log(max(counts[i], 1) / max(here, 1)) / math.log(value / sizes.base[symbol])
            powers[symbol] = max(0, math.floor(ratio + 0.15))
        key = " * ".join(s if k == 1 else f"{s}^{k}" for s, k in powers.items() if k)
        terms[key] = terms.get(key, 0) + here / math.prod(sizes.base[s] ** k for s, k in powers.items())
    return " + ".join(f"{number:.6g}" + (f" * {key}" if key else "") for key, number in terms.items())


def grouped_bytes(signature):
    terms = {}
    for p in signature:
        if "shape" not in p:
            continue
        number, factors = WIDTHS[p["dtype"]], []
        for extent in p["shape"]:
            parts = extent.split(" * ")
            if not all(part.isidentifier() or part.isdigit() for part in parts):
                parts = [f"({extent})"]
            for part in parts:
                if part.isdigit():
                    number *= int(part)
                else:
                    factors.append(part)
        key = " * ".join(factor if factors.count(factor) == 1 else f"{factor}^{factors.count(factor)}"
                         for factor in sorted(set(factors)))
        terms[key] = terms.get(key, 0) + number
    return " + ".join(f"{number} * {key}" if key else str(number) for key, number in terms.items())


def cost_of(text, sizes):
    """The value of a cost formula."""
    return evaluate(text.replace("^", "**"), sizes)
