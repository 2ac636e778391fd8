"""Rotary embedding and KV cache write: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

tokens = 8192
hq = 32
d = 128
hk = 8
positions = 4096


def rotate(x, cos, sin):
    """Rotates the pairs (x[i], x[i + d/2]) of each head, in fp32."""
    wide = x.to(cos.dtype)
    left, right = wide.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


class Model(nn.Module):
    """q_out = rotate(q); k_cache[slot] = rotate(k); v_cache[slot] = v."""

    def forward(self, q, k, v, cos, sin, position, slot):
        row = position.long()
        place = slot.long()
        cos, sin = cos[row][:, None, :], sin[row][:, None, :]
        k_cache, v_cache = torch.empty_like(k), torch.empty_like(v)
        k_cache[place] = rotate(k, cos, sin)
        v_cache[place] = v
        return rotate(q, cos, sin), k_cache, v_cache


def get_inputs():
    return [
        torch.randn(tokens, hq, d, dtype=torch.bfloat16),
        torch.randn(tokens, hk, d, dtype=torch.bfloat16),
        torch.randn(tokens, hk, d, dtype=torch.bfloat16),
        torch.rand(positions, d // 2) * 2 - 1,
        torch.rand(positions, d // 2) * 2 - 1,
        torch.randint(0, positions, (tokens,), dtype=torch.int32),
        torch.randperm(tokens, dtype=torch.int32),
    ]


def get_init_inputs():
    return []
