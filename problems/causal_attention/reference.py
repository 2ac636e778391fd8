"""Causal attention: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

h = 16
n = 4096
d = 64


class Model(nn.Module):
    """o = softmax(q k^T / sqrt(d)) v for each head; a query sees itself and what came before it."""

    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        ahead = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(ahead, float("-inf"))
        return torch.matmul(torch.softmax(scores, dim=-1), v)


class Sdpa(nn.Module):
    """The same by PyTorch's fused attention, which the arms sdpa-flash and sdpa-cudnn run."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]


def get_inputs():
    return [torch.randn(h, n, d, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
