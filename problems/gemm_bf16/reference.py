"""Matrix product in bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

m = 8192
k = 8192
n = 8192


class Model(nn.Module):
    """c = a @ b: bf16 in, sums in fp32, bf16 out."""

    def forward(self, a, b):
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16), torch.randn(k, n, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
