"""Indices of the k largest of each row: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

rows = 4096
n = 8192
k = 2048


def valid_of(x, length):
    return length.clamp(0, x.shape[1])[:, None]


class Model(nn.Module):
    """topk does not say which of equal elements it takes, so its k-th value decides: all above it, and the first of
    those equal to it."""

    def forward(self, x, length):
        column = torch.arange(x.shape[1], device=x.device)[None, :]
        inside = column < valid_of(x, length)
        x = torch.where(inside, x, -torch.inf)
        least = torch.topk(x, min(k, x.shape[1]), dim=1).values[:, -1:]
        above, equal = x > least, (x == least) & inside
        wanted = k - above.sum(dim=1, keepdim=True)
        chosen = (above & inside) | (equal & (equal.cumsum(dim=1) <= wanted))
        place = torch.where(chosen, chosen.cumsum(dim=1) - 1, k)
        out = torch.full((x.shape[0], k + 1), -1, dtype=torch.int32, device=x.device)
        return out.scatter_(1, place, column.expand_as(place).to(torch.int32))[:, :k].contiguous()


class Library_vllm(nn.Module):
    """vLLM's radix select for sparse attention. It leaves the order of the indices open, and which of equal elements it
    takes: it does less than the problem asks for."""

    @staticmethod
    def library():
        import vllm._C_stable_libtorch  # registers torch.ops._C
        return "vLLM's top_k_per_row, indices in no order"

    def forward(self, x, length):
        rows_, columns = x.shape
        ends = length.clamp(0, columns).to(torch.int32)
        out = torch.empty(rows_, k, dtype=torch.int32, device=x.device)
        if rows_ <= 512:
            torch.ops._C.top_k_per_row_decode(x, 1, ends, out, rows_, columns, 1, k)
        else:
            torch.ops._C.top_k_per_row_prefill(x, torch.zeros_like(ends), ends, out, rows_, columns, 1, k)
        return out


def get_inputs():
    lengths = torch.tensor([0, 45, 700, 3000] + list(range(1000000, 1000012)), dtype=torch.int32)
    return [torch.randn(rows, n), lengths[torch.randint(0, len(lengths), (rows,))]]


def get_init_inputs():
    return []
