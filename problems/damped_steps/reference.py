"""Damped steps: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

rows = 8192
cols = 4096


class Model(nn.Module):
    """y[r, c] = x[r, c] after steps[c] steps of v = damping * v + drive[s mod 16]."""

    def __init__(self, damping=0.998):
        super().__init__()
        self.damping = torch.tensor(damping, dtype=torch.float32).item()  # as launch() gets it, also where this runs in float64

    def forward(self, x, steps, drive):
        v = x.clone()
        for s in range(int(steps.max())):
            moving = steps > s
            v[:, moving] = self.damping * v[:, moving] + drive[s % 16]
        return v


def get_inputs():
    steps = torch.ones(cols, dtype=torch.int32)
    steps[torch.randint(0, 32, (cols,)) == 0] = 200
    return [torch.randn(rows, cols), steps, torch.randn(16)]


def get_init_inputs():
    return []
