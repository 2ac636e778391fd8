"""Single-precision matrix product: the specification, as PyTorch runs it eagerly (TF32 off)."""

import torch
import torch.nn as nn

m = 4096
k = 4096
n = 4096


class Model(nn.Module):
    """c = a @ b."""

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
