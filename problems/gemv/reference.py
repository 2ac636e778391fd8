"""Matrix times vector in bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

m = 16384
k = 16384


class Model(nn.Module):
    """y = weight @ x: bf16 in, sums in fp32, bf16 out."""

    def __init__(self, m, k):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(m, k, dtype=torch.bfloat16))

    def forward(self, x):
        return torch.mv(self.weight, x)


def get_inputs():
    return [torch.randn(k, dtype=torch.bfloat16)]


def get_init_inputs():
    return [m, k]
