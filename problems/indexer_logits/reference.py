"""Logits of DeepSeek's lightning indexer in fp8: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

s = 4096
n = 8192
HEADS = 64
DIM = 128


class Model(nn.Module):
    """A product for each head, cut off at 0 and weighted, added up over the heads; fp8 in, products and sums
    in fp32. Outside of a query's window minus infinity."""

    def forward(self, q, k, sk, w, starts, ends):
        keys = k.to(sk.dtype).T
        logits = torch.zeros(q.shape[0], k.shape[0], dtype=sk.dtype, device=q.device)
        for head in range(HEADS):
            logits += w[:, head, None] * torch.relu(q[:, head].to(sk.dtype) @ keys)
        j = torch.arange(k.shape[0], device=q.device)
        outside = (j < starts[:, None]) | (j >= ends[:, None])
        return (logits * sk).masked_fill(outside, float("-inf"))


class Library_deepgemm(nn.Module):
    """The same by DeepGEMM, with clean logits: it writes minus infinity, too. Its rows have a rounded length in
    memory; what it returns is the part of n columns."""

    @staticmethod
    def library():
        import deep_gemm
        return f"DeepGEMM {getattr(deep_gemm, '__version__', '')}".strip()

    def __init__(self):
        super().__init__()
        import deep_gemm
        self.logits = deep_gemm.fp8_mqa_logits

    def forward(self, q, k, sk, w, starts, ends):
        return self.logits(q, (k, sk), w, starts, ends, clean_logits=True)


def bounds(total):
    return torch.cat([torch.tensor([0]), torch.randint(0, total + 1, (s - 2,)).sort().values,
                      torch.tensor([total])]).to(torch.int32)


def get_inputs():
    return [torch.randn(s, HEADS, DIM).to(torch.float8_e4m3fn), torch.randn(n, DIM).to(torch.float8_e4m3fn),
            torch.rand(n) + 0.5, torch.randn(s, HEADS), bounds((n + 7) // 8), bounds(n)]


def get_init_inputs():
    return []
