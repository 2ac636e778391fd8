"""Attention of one new token over a paged KV cache: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

b = 32
hq = 32
d = 128
max_pages = 512
page = 16
hk = 8


def gathered(k_cache, v_cache, page_table, lengths):
    """Keys and values of each sequence, [b, hk, most tokens, d], with zeros behind the last, and where a token is."""
    table = page_table.long()
    k, v = (cache[table].flatten(1, 2) for cache in (k_cache, v_cache))
    there = torch.arange(k.shape[1], device=k.device) < lengths[:, None]
    # What no sequence uses is NaN, and a mask adds to it or multiplies it by zero.
    unused = ~there[:, :, None, None]
    k, v = (x.masked_fill(unused, 0).transpose(1, 2) for x in (k, v))
    return k, v, there


class Model(nn.Module):
    """o = softmax(q k^T / sqrt(d)) v over the tokens of each sequence; zeros where there is none."""

    def forward(self, q, k_cache, v_cache, page_table, lengths):
        sequences, _, width = q.shape
        k, v, there = gathered(k_cache, v_cache, page_table, lengths)
        # The heads of q that share a head of k are its queries. Scores and weights are fp32, as in fused kernels.
        wide = torch.promote_types(q.dtype, torch.float32)
        queries = q.view(sequences, k.shape[1], -1, width).to(wide)
        scores = torch.matmul(queries, k.to(wide).transpose(2, 3)) / math.sqrt(width)
        weights = torch.softmax(scores.masked_fill(~there[:, None, None], float("-inf")), dim=-1)
        o = torch.matmul(weights, v.to(wide)).to(q.dtype)
        return o.reshape(q.shape).masked_fill((lengths == 0)[:, None, None], 0)


class Sdpa(nn.Module):
    """The same by PyTorch's fused attention, on a gathered copy of the pages."""

    def forward(self, q, k_cache, v_cache, page_table, lengths):
        sequences, _, width = q.shape
        k, v, there = gathered(k_cache, v_cache, page_table, lengths)
        queries = q.view(sequences, k.shape[1], -1, width)
        o = F.scaled_dot_product_attention(queries, k, v, attn_mask=there[:, None, None])
        return o.reshape(q.shape).masked_fill((lengths == 0)[:, None, None], 0)


class Library_fa3(nn.Module):
    """The same by FlashAttention-3 on the pages as they lie: its own package, or vLLM's build of it (0.25)."""

    @staticmethod
    def library():
        try:
            import flash_attn_interface
            return f"FlashAttention-3 {getattr(flash_attn_interface, '__version__', '')}, paged".replace(" ,", ",")
        except ImportError:
            import vllm.vllm_flash_attn._vllm_fa3_C  # registers torch.ops._vllm_fa3_C
            return "FlashAttention-3, vLLM's build, paged"

    def __init__(self):
        super().__init__()
        self.starts = {}
        try:
            from flash_attn_interface import flash_attn_with_kvcache
            self.own = flash_attn_with_kvcache
        except ImportError:
            self.own = None

    def forward(self, q, k_cache, v_cache, page_table, lengths):
        if self.own:
            o = self.own(q[:, None], k_cache, v_cache, cache_seqlens=lengths, page_table=page_table, causal=True)
            return (o[0] if isinstance(o, tuple) else o)[:, 0]
        sequences = q.shape[0]
        if sequences not in self.starts:
            self.starts[sequences] = torch.arange(sequences + 1, dtype=torch.int32, device=q.device)
        # No new keys and no output given; where the queries start; how many tokens of each cache are used; the
        # greatest lengths; the pages. No positions, scales or schedule, and as many splits as it likes.
        most = page_table.shape[1] * k_cache.shape[1]
        cache = [None] * 4 + [self.starts[sequences], None, None, None, lengths, 1, most, page_table] + [None] * 8
        options = [q.shape[-1] ** -0.5, True, -1, -1, 0.0, True, None, 0, None, 0, None, 1, 0, None]
        return torch.ops._vllm_fa3_C.fwd(q, k_cache, v_cache, *cache, *options)[0]


def get_inputs():
    lengths = torch.linspace(0, max_pages * page, b).round().int()[torch.randperm(b)]
    page_table = torch.randperm(b * max_pages, dtype=torch.int32).view(b, max_pages)
    there = torch.empty(b * max_pages, page, dtype=torch.bool)
    slots = torch.arange(max_pages * page).view(max_pages, page)
    there[page_table.long()] = slots < lengths[:, None, None]
    caches = [
        torch.randn(b * max_pages, page, hk, d, dtype=torch.bfloat16).masked_fill(~there[:, :, None, None], float("nan"))
        for _ in range(2)
    ]
    return [torch.randn(b, hq, d, dtype=torch.bfloat16), *caches, page_table, lengths]


def get_init_inputs():
    return []
