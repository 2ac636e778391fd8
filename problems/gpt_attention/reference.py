"""Causal self-attention block of a small GPT: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn

b = 16
t = 512
h = 8
d = 64


class Model(nn.Module):
    """y = proj(attention(qkv(x))), causal, h heads."""

    def __init__(self, heads, depth):
        super().__init__()
        self.heads = heads
        channels = heads * depth
        self.qkv = nn.Linear(channels, 3 * channels)
        self.proj = nn.Linear(channels, channels)
        for linear in (self.qkv, self.proj):
            nn.init.normal_(linear.weight, std=0.05)
            nn.init.normal_(linear.bias, std=0.1)

    def forward(self, x):
        batch, tokens, channels = x.shape
        q, k, v = (part.view(batch, tokens, self.heads, -1).transpose(1, 2) for part in self.qkv(x).split(channels, dim=2))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        ahead = torch.ones(tokens, tokens, dtype=torch.bool, device=x.device).triu(1)
        weights = torch.softmax(scores.masked_fill(ahead, float("-inf")), dim=-1)
        return self.proj(torch.matmul(weights, v).transpose(1, 2).reshape(batch, tokens, channels))


def get_inputs():
    return [torch.randn(b, t, h * d)]


def get_init_inputs():
    return [h, d]
