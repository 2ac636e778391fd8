"""A polynomial of many terms: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

n = 16777216
terms = 1024


class Model(nn.Module):
    """y = the sum of c[k] t^k by Horner's rule, with t = radius x / (1 + |x|)."""

    def __init__(self, radius=0.9995):
        super().__init__()
        self.radius = torch.tensor(radius, dtype=torch.float32).item()  # as launch() gets it, also where this runs in float64

    def forward(self, x, c):
        t = self.radius * x / (1 + x.abs())
        y = torch.zeros_like(x)
        for coefficient in reversed(c.unbind()):
            y = torch.addcmul(coefficient, y, t)
        return y


def get_inputs():
    return [100 + 19900 * torch.rand(n), torch.randn(terms)]


def get_init_inputs():
    return []
