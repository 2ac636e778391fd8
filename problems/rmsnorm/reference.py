"""RMSNorm in bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 8192
cols = 8192
eps = 1.0e-6


def rms_norm(x, weight, epsilon):
    """One kernel, where PyTorch has it (since 2.4); else the definition in fp32."""
    if hasattr(F, "rms_norm"):
        return F.rms_norm(x, (x.shape[-1],), weight, epsilon)
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + epsilon) * weight).to(x.dtype)


class Model(nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * weight over the last dimension: bf16 in and out, fp32 inside."""

    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, dtype=torch.bfloat16) * 0.2 + 1)
        # As launch() gets it, also where this runs in float64.
        self.eps = torch.tensor(eps, dtype=torch.float32).item()

    def forward(self, x):
        return rms_norm(x, self.weight, self.eps)


class Library_vllm(nn.Module):
    """The same by vLLM's kernel, which rounds to bf16 before it multiplies with the weight."""

    @staticmethod
    def library():
        import importlib.util
        found = importlib.util.find_spec("vllm")  # the package, or a folder that holds its library
        if found is None:
            raise ImportError("there is no package vllm")
        torch.ops.load_library(f"{found.submodule_search_locations[0]}/_C_stable_libtorch.abi3.so")
        return "vLLM"

    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, dtype=torch.bfloat16) * 0.2 + 1)

    def forward(self, x):
        y = torch.empty_like(x)
        torch.ops._C.rms_norm(y, x, self.weight, eps)
        return y


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.bfloat16)]


def get_init_inputs():
    return [cols]
