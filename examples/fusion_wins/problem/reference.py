"""Bias + GELU + residual + LayerNorm: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 16384
cols = 4096


class Model(nn.Module):
    """y = LayerNorm(residual + gelu(x + bias)) * gamma + beta, over the last dimension."""

    def __init__(self, cols, eps=1.0e-5):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(cols) * 0.5)
        self.norm = nn.LayerNorm(cols, eps=eps)

    def forward(self, x, residual):
        # approximate="none" is the exact erf form, not the tanh approximation.
        return self.norm(residual + F.gelu(x + self.bias, approximate="none"))


def get_inputs():
    return [torch.randn(rows, cols), torch.randn(rows, cols)]


def get_init_inputs():
    return [cols]
