"""RMSNorm and QKV projection, bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

m = 16
k = 8192
n = 10240
eps = 1.0e-6


def rms_norm(x, weight, epsilon):
    """One kernel, where PyTorch has it (since 2.4); else the definition in fp32."""
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, (x.shape[-1],), weight, epsilon)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon) * weight).to(x.dtype)


class Model(nn.Module):
    """y = rms_norm(x) * gain @ weight^T: bf16 in and out, sums in fp32."""

    def __init__(self, k, n):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(k, dtype=torch.bfloat16) * 0.2 + 1)
        self.qkv = nn.Linear(k, n, bias=False, dtype=torch.bfloat16)
        # As launch() gets it, also where this runs in float64.
        self.eps = torch.tensor(eps, dtype=torch.float32).item()

    def forward(self, x):
        return self.qkv(rms_norm(x, self.gain, self.eps))


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16)]


def get_init_inputs():
    return [k, n]
