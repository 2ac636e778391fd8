"""Matrix product in bf16, the second matrix by rows: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

m = 4096
k = 4096
n = 4096


class Model(nn.Module):
    """c = a @ b.T: bf16 in, sums in fp32, bf16 out."""

    def forward(self, a, b):
        return torch.matmul(a, b.t())


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16), torch.randn(n, k, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
