"""Attention: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

h = 16
n = 4096
d = 64


class Model(nn.Module):
    """o = softmax(q k^T / sqrt(d)) v for each head."""

    def forward(self, q, k, v):
        scores = torch.matmul(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        return torch.matmul(torch.softmax(scores, dim=-1), v)


class Sdpa(nn.Module):
    """The same by PyTorch's fused attention, which the arms sdpa-flash and sdpa-cudnn run."""

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def get_inputs():
    return [torch.randn(h, n, d, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
