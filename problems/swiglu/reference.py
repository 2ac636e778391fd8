"""SwiGLU activation in bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

rows = 8192
cols = 14336


class Model(nn.Module):
    """y = silu(gate) * up, where a row of x is the gates and behind them the numbers that they let through: fp32
    inside, one rounding."""

    def forward(self, x):
        gate, up = x.to(torch.promote_types(x.dtype, torch.float32)).chunk(2, dim=-1)
        return (F.silu(gate) * up).to(x.dtype)


class Library_vllm(nn.Module):
    """The same by vLLM's kernel, which rounds the gate to bf16 before the product."""

    @staticmethod
    def library():
        import importlib.util
        found = importlib.util.find_spec("vllm")  # the package, or a folder that holds its library
        if found is None:
            raise ImportError("there is no package vllm")
        torch.ops.load_library(f"{found.submodule_search_locations[0]}/_C_stable_libtorch.abi3.so")
        return "vLLM"

    def forward(self, x):
        y = torch.empty(x.shape[0], x.shape[1] // 2, dtype=x.dtype, device=x.device)
        torch.ops._C.silu_and_mul(y, x)
        return y


def get_inputs():
    return [torch.randn(rows, 2 * cols, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
