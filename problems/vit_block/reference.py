"""Encoder block of a vision transformer: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

b = 32
t = 256
h = 6
d = 64


class Model(nn.Module):
    """r = x + proj(attention(qkv(norm_1(x)))); y = r + down(gelu(up(norm_2(r))))."""

    def __init__(self, heads, depth, eps=1.0e-5):
        super().__init__()
        self.heads = heads
        channels = heads * depth
        self.norm_1 = nn.LayerNorm(channels, eps=eps)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        self.norm_2 = nn.LayerNorm(channels, eps=eps)
        self.up = nn.Linear(channels, 4 * channels)
        self.down = nn.Linear(4 * channels, channels)
        for linear in (self.qkv, self.proj, self.up, self.down):
            nn.init.normal_(linear.weight, std=0.05)
            nn.init.normal_(linear.bias, std=0.1)
        for norm in (self.norm_1, self.norm_2):
            nn.init.normal_(norm.weight, mean=1, std=0.2)
            nn.init.normal_(norm.bias, std=0.1)

    def forward(self, x):
        batch, tokens, channels = x.shape
        qkv = self.qkv(self.norm_1(x))
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in qkv.split(channels, dim=2))
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1]), dim=-1)
        r = x + self.proj(torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, channels))
        return r + self.down(F.gelu(self.up(self.norm_2(r)), approximate="none"))


def get_inputs():
    return [torch.randn(b, t, h * d)]


def get_init_inputs():
    return [h, d]
