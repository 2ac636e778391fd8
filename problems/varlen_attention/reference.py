"""Causal attention over packed sequences: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn

total = 16384
hq = 32
d = 128
hk = 8
segments = 16


class Model(nn.Module):
    """For each sequence o = softmax(q k^T / sqrt(d), causal) v; hq / hk heads of q share a head of k and v."""

    def forward(self, q, k, v, cu_seqlens):
        o = torch.empty_like(q)
        group = q.shape[1] // k.shape[1]
        bounds = cu_seqlens.tolist()
        for begin, end in zip(bounds, bounds[1:]):
            if begin == end:
                continue
            query = q[begin:end].transpose(0, 1)
            key, value = (x[begin:end].transpose(0, 1).repeat_interleave(group, dim=0) for x in (k, v))
            scores = torch.matmul(query, key.transpose(1, 2)) / math.sqrt(q.shape[-1])
            hidden = torch.ones(end - begin, end - begin, dtype=torch.bool, device=q.device).triu(1)
            weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
            o[begin:end] = torch.matmul(weights, value).transpose(0, 1)
        return o


class Library_fa3(nn.Module):
    """The same by FlashAttention-3: its own package, or vLLM's build of it (0.25). Both take the offsets as they
    are. They want to know the greatest length on the host, where a serving engine has it; here it is read once."""

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
        self.longest = {}
        try:
            from flash_attn_interface import flash_attn_varlen_func
            self.own = flash_attn_varlen_func
        except ImportError:
            self.own = None

    def forward(self, q, k, v, cu_seqlens):
        # The lengths are the same in every draw, only their order is not: one look for each size is enough.
        size = q.shape[0], len(cu_seqlens)
        if size not in self.longest:
            self.longest[size] = int(cu_seqlens.diff().max())
        longest = self.longest[size]
        if self.own:
            o = self.own(q, k, v, cu_seqlens, cu_seqlens, longest, longest, causal=True)
            return o[0] if isinstance(o, tuple) else o
        # No cache and no output given; where sequences start; their greatest lengths; no pages, positions or
        # scales. Then scale, causal, no window, no softcap, rotary interleaved, no schedule, one split, and
        # the rest as by default.
        sequences = [None] * 4 + [cu_seqlens, cu_seqlens] + [None] * 3 + [longest, longest] + [None] * 9
        options = [q.shape[-1] ** -0.5, True, -1, -1, 0.0, True, None, 1, None, 0, None, 1, 0, None]
        return torch.ops._vllm_fa3_C.fwd(q, k, v, *sequences, *options)[0]


def get_inputs():
    """Lengths in the ratio 1 : 3 : 5 ..., in any order."""
    cuts = torch.arange(segments + 1) ** 2 * total // segments ** 2
    lengths = cuts.diff()[torch.randperm(segments)]
    cu_seqlens = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)]).to(torch.int32)
    shapes = (total, hq, d), (total, hk, d), (total, hk, d)
    return [torch.randn(shape).to(torch.bfloat16) for shape in shapes] + [cu_seqlens]


def get_init_inputs():
    return []
