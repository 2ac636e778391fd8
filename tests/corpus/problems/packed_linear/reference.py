"""Linear layer without a bias: the specification, as PyTorch runs it eagerly (TF32 off)."""

import torch
import torch.nn as nn

rows = 4096
ins = 1024
outs = 1024


class Model(nn.Module):
    """y = x @ w.T."""

    def __init__(self, ins, outs):
        super().__init__()
        self.linear = nn.Linear(ins, outs, bias=False)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(rows, ins)]


def get_init_inputs():
    return [ins, outs]
