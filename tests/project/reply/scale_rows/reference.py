import torch
import torch.nn as nn

rows = 4096
cols = 4096


class Model(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.s = nn.Parameter(torch.rand(rows) * 1.5 + 0.5)

    def forward(self, x):
        return x * self.s[:, None]  # a template's {{BRACES}} and ``` here are text


def get_inputs():
    return [torch.randn(rows, cols)]


def get_init_inputs():
    return [rows]
