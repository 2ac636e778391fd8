"""Finds how an extent depends on the sizes: formulas through samples, in the syntax of problem.yaml."""

import math


def affine(symbols, samples):
    """q + Σ m·s through all samples [(sizes, extent)], or None. Samples vary one symbol at a time, then
    several."""
    base, extent = samples[0]
    slopes = {}
    for symbol in symbols:
        points = {sizes[symbol]: value for sizes, value in samples
                  if all(sizes[s] == base[s] for s in symbols if s != symbol)}
        points.pop(base[symbol], None)
        if not points:
            return None
        at, value = next(iter(points.items()))
        if (value - extent) % (at - base[symbol]):
            return None
        slopes[symbol] = (value - extent) // (at - base[symbol])
    constant = extent - sum(slopes[s] * base[s] for s in symbols)
    if any(constant + sum(slopes[s] * sizes[s] for s in symbols) != value for sizes, value in samples):
        return None
    text = " + ".join(s if m == 1 else f"{m} * {s}" for s, m in slopes.items() if m)
    return text if not constant else f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"


def product(symbols, samples):
    base, extent = samples[0]
    whole = math.prod(base[s] for s in symbols)
    if extent % whole:
        return None
    factor = extent // whole
    if any(factor * math.prod(sizes[s] for s in symbols) != value for sizes, value in samples):
        return None
    return " * ".join(([str(factor)] if factor > 1 else []) + list(symbols))


def floors(symbols, samples):
    """Every (q, r) such that floor((s + q) / r), the usual effect of pooling and strides, matches all
    samples: smallest q first."""
    if len(symbols) != 1:
        return []
    s = symbols[0]
    base, extent = samples[0]
    found = [(q, r) for r in range(2, 65) for q in range(extent * r - base[s], extent * r - base[s] + r)
             if all((sizes[s] + q) // r == value for sizes, value in samples)]
    return sorted(found, key=lambda pair: (abs(pair[0]), pair))


def telling(found, values):
    """The value at which those formulas differ most; None if they agree at all of them."""
    def left(value):  # the number of formulas left in the worst case
        extents = [(value + q) // r for q, r in found]
        return max(extents.count(extent) for extent in set(extents))

    best = min(values, key=left, default=None)
    return best if best is not None and left(best) < len(found) else None


def floored(symbols, samples):
    found = floors(symbols, samples)
    if not found:
        return None
    q, r = found[0]
    return (f"floor(({symbols[0]} {'+' if q > 0 else '-'} {abs(q)}) / {r})" if q
            else f"floor({symbols[0]} / {r})")


def formula(symbols, samples):
    """The formula for an extent, or None."""
    if not symbols:
        return str(samples[0][1])
    for form in (affine, product, floored):
        text = form(symbols, samples)
        if text is not None:
            return text
    return None


def evaluate(text, sizes):
    return eval(text, {"__builtins__": {}, "floor": math.floor}, sizes)


def extent_of(shape, sizes):
    return math.prod(int(evaluate(text, sizes)) for text in shape)
