# Rung 1: FlashAttention in Triton: two dots and a running maximum.
#
# Changed     from CUDA: the online softmax of rung 02 is written in tiles; nothing says who copies, who
#             multiplies, or where a tile lies.
# Why         the scores must stay on the chip. That is an algorithm, and a compiler of tiles keeps it.
# Prediction  0.75 of cuDNN: the two products and the softmax follow each other in each warp.
#
# Shapes      q, k, v, o [h, n, d], fp16; d is 64 or 128.
# Launch      one program for 128 queries of a head.
# Resources   8 warps; 3 stages of a tile of d keys and one of values.
# Cost        4 h n n d FLOPs; q and o once, k and v once for each program of a head.
# Divides     nothing: queries are masked, and keys in the last tile alone.
# Source      FlashAttention-2's order of loops.
import math

import torch
import triton
import triton.language as tl


@triton.jit
def attend_to(q_tile, k_tile, v_tile, first, n, scale, most, total, sums, MASKED: tl.constexpr,
              KEYS: tl.constexpr):
    scores = tl.dot(q_tile, k_tile)
    if MASKED:
        scores = tl.where((first + tl.arange(0, KEYS))[None, :] < n, scores, -float("inf"))
    higher = tl.maximum(most, tl.max(scores, axis=1) * scale)
    weights = tl.exp2(scores * scale - higher[:, None])
    mend = tl.exp2(most - higher)
    sums = tl.dot(weights.to(tl.float16), v_tile, sums * mend[:, None])
    return higher, total * mend + tl.sum(weights, axis=1), sums


@triton.jit
def attend(q, k, v, o, n, scale, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * n * D
    query = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    key = tl.arange(0, KEYS)
    column = tl.arange(0, D)
    at = head + query[:, None] * D + column[None, :]
    q_tile = tl.load(q + at, mask=query[:, None] < n, other=0.0)
    most = tl.full((QUERIES,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    sums = tl.zeros((QUERIES, D), dtype=tl.float32)
    k += head + key[None, :] * D + column[:, None]
    v += head + key[:, None] * D + column[None, :]
    whole = n // KEYS * KEYS
    for first in range(0, whole, KEYS):
        most, total, sums = attend_to(q_tile, tl.load(k), tl.load(v), first, n, scale, most, total, sums,
                                      False, KEYS)
        k += KEYS * D
        v += KEYS * D
    if whole < n:
        k_tile = tl.load(k, mask=whole + key[None, :] < n, other=0.0)
        v_tile = tl.load(v, mask=whole + key[:, None] < n, other=0.0)
        most, total, sums = attend_to(q_tile, k_tile, v_tile, whole, n, scale, most, total, sums, True, KEYS)
    tl.store(o + at, (sums / total[:, None]).to(tl.float16), mask=query[:, None] < n)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        h, n, d = q.shape
        o = torch.empty_like(q)
        scale = math.log2(math.e) / math.sqrt(d)
        attend[(triton.cdiv(n, 128), h)](q, k, v, o, n, scale, D=d, QUERIES=128, KEYS=d, num_warps=8,
                                         num_stages=3)
        return o
