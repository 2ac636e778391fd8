"""Conv2d + bias + scale + ReLU: the specification, as PyTorch runs it eagerly (TF32 off)."""

import torch
import torch.nn as nn

n = 64
c_in = 16
h = 128
w = 128
c_out = 32


class Model(nn.Module):
    """y = relu((conv2d(x, weight, padding=1) + bias) * scale), one scale a channel."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel_size=3, stride=1, padding=1, bias=True)
        self.scale = nn.Parameter(1.0 + 0.25 * torch.randn(c_out))

    def forward(self, x):
        return torch.relu(self.conv(x) * self.scale.view(1, -1, 1, 1))


def get_inputs():
    return [torch.randn(n, c_in, h, w)]


def get_init_inputs():
    return [c_in, c_out]
