"""How the values of tensors are drawn, in the syntax of problem.yaml."""

import torch

ENOUGH = 1 << 20  # elements, enough for three digits of a spread


def rounded(value):
    return float(f"{value:.3g}")


def drawn_as(tensor, draws):
    """problem.yaml's `init` for an input, and a note if it differs from what the file does."""
    how = draws.known.get(id(tensor))
    if tensor.dtype == torch.bool:
        return {"integer": [0, 1]}, None
    if how and (tensor.is_floating_point() or "integer" in how):
        return how, None
    if not tensor.is_floating_point():
        low, high = int(tensor.min()), int(tensor.max())
        for known in draws.integers:
            if known[0] <= low and high <= known[1]:
                return {"integer": known}, None
        return {"integer": [low, high]}, f"its integers seem to lie between {low} and {high}"
    x = tensor.detach().double()
    distinct = torch.unique(x)
    if tensor.numel() >= 4 and len(distinct) <= 8:
        return {"choice": [float(v) for v in distinct]}, None
    if x.dim() == 2 and x.shape[0] == x.shape[1] and x.shape[0] > 2:
        if torch.equal(x, torch.triu(x)):
            return {"generator": "upper_triangular"}, None
        if torch.equal(x, torch.tril(x)):
            return {"generator": "lower_triangular"}, None
        if torch.equal(x, x.t()):
            return {"generator": "symmetric"}, None
    if (x.dim() >= 1 and x.shape[-1] > 1 and bool((x >= 0).all())
            and bool(((x.sum(-1) - 1).abs() < 1e-4).all())):
        return {"generator": "rows_sum_to_one"}, None
    return spread(x), "the way its values are made is unknown: they are drawn with the same spread"


def spread(x):
    """A distribution with the tensor's spread. If all values are equal, a spread around that value, because a
    kernel that ignores the tensor must not be correct."""
    x = x.detach().flatten()
    low, high = float(x.min()), float(x.max())
    x = x[:: -(-x.numel() // ENOUGH)].double()  # a parameter of gigabytes does not fit into memory several
                                                # times in float64
    std, mean = float(x.std(unbiased=False)), float(x.mean())
    if low == high:
        if low == 0:
            return {"uniform": [-0.25, 0.25]}
        return {"uniform": sorted([rounded(0.5 * low), rounded(1.5 * low)])}
    centred = (x - mean) / std
    if x.numel() >= 32 and float((centred**4).mean()) > 2.4:
        return {"normal": [rounded(mean), rounded(std)]}
    bound = max(abs(low), abs(high))
    if low < 0 < high and abs(mean) < 0.5 * bound:
        return {"uniform": [-rounded(bound), rounded(bound)]}
    return {"uniform": [rounded(low), rounded(high)] if rounded(low) < rounded(high)
            else [rounded(low), rounded(low) + rounded(std) + 1e-6]}
