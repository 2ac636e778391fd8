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


class Library_fa3(nn.Module):
    """The same by FlashAttention-3: its own package, or vLLM's build of it (0.25), which takes a list of sequences.
    Here that is one sequence with h heads; both read q, k and v where they lie."""

    @staticmethod
    def library():
        try:
            import flash_attn_interface
            return f"FlashAttention-3 {getattr(flash_attn_interface, '__version__', '')}".strip()
        except ImportError:
            import vllm.vllm_flash_attn._vllm_fa3_C  # registers torch.ops._vllm_fa3_C
            return "FlashAttention-3, vLLM's build"

    def __init__(self):
        super().__init__()
        self.starts = {}
        try:
            from flash_attn_interface import flash_attn_func
            self.own = flash_attn_func
        except ImportError:
            self.own = None

    def forward(self, q, k, v):
        length = q.shape[1]
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        if self.own:
            o = self.own(q[None], k[None], v[None], causal=True)
            return (o[0] if isinstance(o, tuple) else o)[0].transpose(0, 1)
        if length not in self.starts:
            self.starts[length] = torch.tensor([0, length], dtype=torch.int32, device=q.device)
        starts = self.starts[length]
        # No cache and no output given; where sequences start; their greatest lengths; no pages, positions or
        # scales. Then scale, causal, no window, no softcap, rotary interleaved, no schedule, one split, and
        # the rest as by default.
        sequences = [None] * 4 + [starts, starts] + [None] * 3 + [length, length] + [None] * 9
        options = [q.shape[-1] ** -0.5, True, -1, -1, 0.0, True, None, 1, None, 0, None, 1, 0, None]
        return torch.ops._vllm_fa3_C.fwd(q, k, v, *sequences, *options)[0].transpose(0, 1)


def get_inputs():
    return [torch.randn(h, n, d, dtype=torch.float16) for _ in range(3)]


def get_init_inputs():
    return []
