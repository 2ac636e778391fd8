"""How an extent follows from the sizes: formulas through samples, as problem.yaml writes them."""

import math


def affine(symbols, samples):
    """q + Σ m·s through all samples [(sizes, extent)], or None. Samples vary one symbol at a time, then several."""
    base, extent = samples[0]
    slopes = {}
    for symbol in symbols:
        points = {sizes[symbol]: value for sizes, value in samples if all(sizes[s] == base[s] for s in symbols if s != symbol)}
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


def floored(symbols, samples):
    """floor((s + q) / r): what pooling and strides make of an extent."""
    if len(symbols) != 1:
        return None
    s = symbols[0]
    for r in range(2, 65):
        base, extent = samples[0]
        for q in range(extent * r - base[s], extent * r - base[s] + r):
            if all((sizes[s] + q) // r == value for sizes, value in samples):
                return f"floor(({s}{f' + {q}' if q > 0 else f' - {-q}' if q < 0 else ''}) / {r})"
    return None


def formula(symbols, samples):
    """How an extent follows from the sizes, or None."""
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
