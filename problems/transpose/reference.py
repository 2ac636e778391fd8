"""Matrix transpose: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

rows = 8192
cols = 8192


class Model(nn.Module):
    """y = the transpose of x, laid out anew (a view alone would move nothing)."""

    def forward(self, x):
        return x.t().contiguous()


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return []
