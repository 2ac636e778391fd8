"""Two matrix products and SwiGLU, bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

m = 4096
k = 4096
n = 14336


class Model(nn.Module):
    """h = silu(x @ gate) * (x @ up): bf16 in and out, sums in fp32."""

    def __init__(self, k, n):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(k, n, dtype=torch.bfloat16) * 0.05)
        self.up = nn.Parameter(torch.randn(k, n, dtype=torch.bfloat16) * 0.05)

    def forward(self, x):
        return F.silu(torch.matmul(x, self.gate)) * torch.matmul(x, self.up)


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16)]


def get_init_inputs():
    return [k, n]
