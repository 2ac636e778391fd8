"""One new token of each sequence through a transformer layer, bf16: the specification, as PyTorch runs it."""

import torch
import torch.nn as nn
import torch.nn.functional as F

b = 16
hq = 32
hk = 8
f = 14336
n = 8192
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

    def attention(self, q, k, v, k_cache, v_cache, lengths):
        """Over the cache and the new token. Scores and weights are fp32, as in fused kernels."""
        sequences, group = q.shape[0], self.hq // self.hk
        wide = torch.promote_types(q.dtype, torch.float32)
        queries = q.view(sequences, self.hk, group, d)
        cached = torch.matmul(queries, k_cache.permute(0, 2, 3, 1)).to(wide)
        own = (queries.to(wide) * k[:, :, None, :].to(wide)).sum(-1, keepdim=True)
        unused = torch.arange(k_cache.shape[1], device=q.device) >= lengths[:, None]
        scores = torch.cat((cached.masked_fill(unused[:, None, None], float("-inf")), own), dim=-1) / d ** 0.5
        weights = torch.softmax(scores, dim=-1)
        values = torch.matmul(weights[..., :-1].to(q.dtype), v_cache.transpose(1, 2)).to(wide)
        return (values + weights[..., -1:] * v[:, :, None, :].to(wide)).to(q.dtype)

    def forward(self, x, k_cache, v_cache, lengths):
        sequences, hidden = x.shape
        qkv = self.qkv(rms_norm(x, self.gain_1, self.eps)).view(sequences, -1, d)
        q, k, v = qkv.split((self.hq, self.hk, self.hk), dim=1)
        cos, sin = angles(lengths)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        o = self.attention(q, k, v, k_cache, v_cache, lengths)
        r = x + self.o(o.reshape(sequences, hidden))
        gate, up = self.gate_up(rms_norm(r, self.gain_2, self.eps)).chunk(2, dim=-1)
        return r + self.down(F.silu(gate) * up), k, v.contiguous()


def get_inputs():
    caches = [torch.randn(b, n, hk, d, dtype=torch.bfloat16) * 0.8 for _ in range(2)]
    lengths = torch.linspace(0, n, b).round().int()[torch.randperm(b)]
    return [torch.randn(b, hq * d, dtype=torch.bfloat16) * 0.05, *caches, lengths]


def get_init_inputs():
    return [hq, hk, f]
