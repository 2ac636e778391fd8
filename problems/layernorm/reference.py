"""LayerNorm over whole images: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

n = 16
c = 64
h = 256
w = 256


class Model(nn.Module):
    """y = LayerNorm(x) over the last three dimensions."""

    def __init__(self, c, h, w, eps=1.0e-5):
        super().__init__()
        self.norm = nn.LayerNorm((c, h, w), eps=eps)

    def forward(self, x):
        return self.norm(x)


def get_inputs():
    return [torch.randn(n, c, h, w)]


def get_init_inputs():
    return [c, h, w]
