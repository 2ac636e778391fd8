"""Conv2d 11x11, stride 4, padding 2, ReLU, MaxPool 3x3 with step 2: the specification, as PyTorch runs it eagerly (TF32 allowed)."""

import torch
import torch.nn as nn

n = 100
c_in = 3
h = 224
w = 224
c_out = 96


class Model(nn.Module):
    """y = maxpool(relu(conv2d(x, weight) + bias))."""

    def __init__(self, c_in, c_out):
        super().__init__()
        self.conv = nn.Conv2d(c_in, c_out, kernel_size=11, stride=4, padding=2)
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2)

    def forward(self, x):
        return self.pool(torch.relu(self.conv(x)))


def get_inputs():
    return [torch.randn(n, c_in, h, w)]


def get_init_inputs():
    return [c_in, c_out]
