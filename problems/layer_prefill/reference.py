"""Transformer layer over a prompt, bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

t = 4096
hq = 32
hk = 8
f = 14336
d = 128
eps = 1.0e-5
theta = 500000.0


def rms_norm(x, weight, epsilon):
    """One kernel, where PyTorch has it (since 2.4); else the definition in fp32."""
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, (x.shape[-1],), weight, epsilon)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon) * weight).to(x.dtype)


def angles(positions):
    """Cosines and sines, [positions, d / 2]."""
    pairs = torch.arange(0, d, 2, dtype=torch.float64, device=positions.device)
    angle = positions.to(torch.float64)[:, None] * theta ** (-pairs / d)
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    """Rotates the pairs (x[i], x[i + d/2]) of each head, in fp32."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    cos, sin = (table[:, None, :].to(wide.dtype) for table in (cos, sin))
    left, right = wide.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


def attention(q, k, v):
    """Causal, [heads, tokens, d]. One kernel, where PyTorch has it (since 2.0); else the definition in fp32."""
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]
    wide = torch.promote_types(q.dtype, torch.float32)
    scores = torch.matmul(q.to(wide), k.to(wide).transpose(1, 2)) / d ** 0.5
    ahead = torch.ones(q.shape[1], q.shape[1], dtype=torch.bool, device=q.device).triu(1)
    return torch.matmul(torch.softmax(scores.masked_fill(ahead, float("-inf")), dim=-1), v.to(wide)).to(q.dtype)


class Model(nn.Module):
    """r = x + o(attention(rotate(qkv(norm_1(x))))); y = r + down(silu(gate(norm_2(r))) * up(norm_2(r)))."""

    def __init__(self, hq, hk, f):
        super().__init__()
        hidden = hq * d
        self.hq, self.hk = hq, hk
        self.gain_1 = nn.Parameter(torch.randn(hidden, dtype=torch.bfloat16) * 0.2 + 1)
        self.qkv = nn.Linear(hidden, (hq + 2 * hk) * d, bias=False, dtype=torch.bfloat16)
        self.o = nn.Linear(hidden, hidden, bias=False, dtype=torch.bfloat16)
        self.gain_2 = nn.Parameter(torch.randn(hidden, dtype=torch.bfloat16) * 0.2 + 1)
        self.gate_up = nn.Linear(hidden, 2 * f, bias=False, dtype=torch.bfloat16)
        self.down = nn.Linear(f, hidden, bias=False, dtype=torch.bfloat16)
        for linear, std in ((self.qkv, 0.016), (self.o, 0.05), (self.gate_up, 0.04), (self.down, 0.02)):
            nn.init.normal_(linear.weight, std=std)
        # As launch() gets it, also where this runs in float64.
        self.eps = torch.tensor(eps, dtype=torch.float32).item()
        self.table = None

    def turns(self, x):
        """The table of a prompt is made once, as serving libraries do."""
        if self.table is None or self.table[0].shape[0] != x.shape[0] or self.table[0].device != x.device:
            self.table = angles(torch.arange(x.shape[0], device=x.device))
        return self.table

    def forward(self, x):
        tokens, hidden = x.shape
        qkv = self.qkv(rms_norm(x, self.gain_1, self.eps)).view(tokens, -1, d)
        q, k, v = qkv.split((self.hq, self.hk, self.hk), dim=1)
        cos, sin = self.turns(x)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        queries, keys, values = (part.transpose(0, 1) for part in (q, k, v))
        # The heads of q that share a head of k and v.
        keys, values = (part.repeat_interleave(self.hq // self.hk, dim=0) for part in (keys, values))
        o = attention(queries, keys, values)
        r = x + self.o(o.transpose(0, 1).reshape(tokens, hidden))
        gate, up = self.gate_up(rms_norm(r, self.gain_2, self.eps)).chunk(2, dim=-1)
        return r + self.down(F.silu(gate) * up), k, v.contiguous()


def get_inputs():
    return [torch.randn(t, hq * d, dtype=torch.bfloat16) * 0.05]


def get_init_inputs():
    return [hq, hk, f]
