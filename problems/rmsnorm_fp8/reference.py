"""RMSNorm with group quantisation to FP8: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

rows = 8192
cols = 8192
eps = 1.0e-6
group = 128
largest = 448.0  # of e4m3
least = 1.0e-10  # of a group's maximum


class Model(nn.Module):
    """y = x / sqrt(mean(x^2) + eps) * weight in fp32; scale = max(|y|) / 448 of each group of 128; the code is
    y / scale, rounded to e4m3."""

    def __init__(self, cols):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(cols, dtype=torch.bfloat16) * 0.2 + 1)
        # As launch() gets it, also where this runs in float64.
        self.eps = torch.tensor(eps, dtype=torch.float32).item()

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        y = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps) * self.weight.to(wide.dtype)
        y = y.unflatten(-1, (-1, group))
        scales = y.abs().amax(-1).clamp(min=least) / largest
        codes = (y / scales[..., None]).flatten(-2)
        if wide.dtype == torch.float32:  # in float64 the exact values are wanted
            codes = codes.to(torch.float8_e4m3fn)
        return codes, scales


class Library_vllm(nn.Module):
    """The same by vLLM's fused kernel. It rounds to bf16 twice before it quantises, so some of its codes are not
    the nearest ones."""

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
        codes = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
        scales = torch.empty(x.shape[0], x.shape[1] // group, dtype=torch.float32, device=x.device)
        torch.ops._C.rms_norm_per_block_quant(codes, x, self.weight, scales, eps, None, None, group, False)
        return codes, scales


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.bfloat16)]


def get_init_inputs():
    return [cols]
