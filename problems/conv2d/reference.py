"""Conv2d 11x11, stride 4, padding 2: the specification, as PyTorch runs it eagerly (TF32 off)."""

import torch
import torch.nn as nn

n = 100
c_in = 3
h = 224
w = 224
c_out = 96


class Model(nn.Module):
    """y = conv2d(x, weight) + bias."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel_size=11, stride=4, padding=2)

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.randn(n, c_in, h, w)]


def get_init_inputs():
    return [c_in, c_out]
