"""Mamba block between its projections: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

b = 8
l = 2048
e = 1024


class Model(nn.Module):
    """Depthwise causal convolution, SiLU, selective scan over 16 states, skip, gate."""

    def __init__(self, e):
        super().__init__()
        self.conv = nn.Parameter(torch.randn(e, 4) * 0.5)
        self.bias = nn.Parameter(torch.randn(e) * 0.1)
        self.log_a = nn.Parameter(torch.rand(e, 16) * 2.75)
        self.skip = nn.Parameter(torch.randn(e) * 0.2 + 1)
        self.dt_bias = nn.Parameter(torch.randn(e) - 4)

    def forward(self, u, z, dt, into, out_of):
        channels, steps = u.shape[2], u.shape[1]
        v = F.conv1d(F.pad(u.transpose(1, 2), (3, 0)), self.conv.unsqueeze(1), self.bias, groups=channels)
        v = F.silu(v).transpose(1, 2)
        delta = F.softplus(dt + self.dt_bias)
        a = -torch.exp(self.log_a)
        h = torch.zeros(u.shape[0], channels, 16, dtype=u.dtype, device=u.device)
        outputs = []
        for t in range(steps):
            d = delta[:, t].unsqueeze(-1)
            h = torch.exp(d * a) * h + d * into[:, t].unsqueeze(1) * v[:, t].unsqueeze(-1)
            outputs.append((h * out_of[:, t].unsqueeze(1)).sum(-1))
        y = torch.stack(outputs, dim=1) + self.skip * v
        return y * F.silu(z)


def get_inputs():
    return [torch.randn(b, l, e), torch.randn(b, l, e), torch.randn(b, l, e), torch.randn(b, l, 16), torch.randn(b, l, 16)]


def get_init_inputs():
    return [e]
