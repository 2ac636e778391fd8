"""Matmul + Swish + sum + GroupNorm: the specification, as PyTorch runs it eagerly (TF32 off)."""

import torch
import torch.nn as nn

rows = 32768
k = 256
channels = 1024


class Model(nn.Module):
    """y = GroupNorm(swish(x W^T + b) + bias), groups of 32 channels."""

    def __init__(self, k, channels, eps=1.0e-5):
        super().__init__()
        self.matmul = nn.Linear(k, channels)
        self.bias = nn.Parameter(torch.randn(channels) * 0.5)
        self.group_norm = nn.GroupNorm(channels // 32, channels, eps=eps)

    def forward(self, x):
        z = self.matmul(x)
        return self.group_norm(torch.sigmoid(z) * z + self.bias)


def get_inputs():
    return [torch.randn(rows, k)]


def get_init_inputs():
    return [k, channels]
