"""Sum of two vectors, minus infinity where the second one is negative: the specification."""

import torch
import torch.nn as nn

n = 16777216


class Model(nn.Module):
    """z = x + y where y >= 0, else -inf."""

    def forward(self, x, y):
        return torch.where(y < 0, -torch.inf, x + y)


def get_inputs():
    return [torch.randn(n), torch.randn(n)]


def get_init_inputs():
    return []
