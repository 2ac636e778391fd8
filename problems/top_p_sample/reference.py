"""Top-k and top-p sampling: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

b = 64
v = 128256


class Model(nn.Module):
    """Sorts each row, keeps a prefix, and inverts its distribution in the order of the tokens. Masses are whole numbers,
    so no sum depends on its order."""

    def forward(self, probs, top_p, top_k, u):
        part = (top_p * 2.0**24).long()[:, None]
        ordered, index = torch.sort(probs, dim=1, descending=True, stable=True)
        mass = (ordered * 2.0**31).long().cumsum(dim=1)
        before = mass - (ordered * 2.0**31).long()
        rank = torch.arange(probs.shape[1], device=probs.device)[None, :]
        keep = (rank == 0) | ((before * 2**24 < part * mass[:, -1:]) & (rank < top_k[:, None]))
        kept = torch.zeros_like(keep).scatter_(1, index, keep)
        mass = torch.where(kept, (probs * 2.0**31).long(), 0).cumsum(dim=1)
        target = ((u * 2.0**24).long() * mass[:, -1]) >> 24
        return (mass <= target[:, None]).sum(dim=1).to(torch.int32)


def zipf(rows, columns):
    """Peaked rows: c/((r + c)(r + c + 1)) at rank r, ranks in random order."""
    c = 2.0 ** torch.randint(0, 7, (rows, 1)).float()
    rank = torch.rand(rows, columns).argsort(dim=1).float()
    return c / ((rank + c) * (rank + c + 1))


def get_inputs():
    top_p = torch.tensor([0.1, 0.5, 0.8, 0.9, 0.9, 0.95, 0.95, 0.99, 1.0])
    top_k = torch.tensor([1, 20, 50, 100, 1000, 1000000, 1000001, 1000002], dtype=torch.int32)
    return [
        zipf(b, v),
        top_p[torch.randint(0, len(top_p), (b,))],
        top_k[torch.randint(0, len(top_k), (b,))],
        torch.rand(b),
    ]


def get_init_inputs():
    return []
