# Rung 2: the same with tensor descriptors and wider tiles of keys.
#
# Changed     k and v come by the TMA, 128 keys at a time, and the last tile alone is masked.
# Why         rung 1 spends instructions on the addresses and masks of every tile, next to exponentials
#             that it must wait for.
# Prediction  1.15 times rung 1.
#
# Shapes      q, k, v, o [h, n, d], fp16; d is 64 or 128.
# Launch      one program for 128 queries of a head.
# Resources   8 warps; 2 stages of a tile of 128 keys and one of values.
# Cost        as rung 1; three descriptors made by the host in each launch.
# Divides     nothing: a descriptor over h, n and d fills with zeros what lies behind a head's last key.
# Source      as rung 1. Needs sm_90.
import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def attend_to(q_tile, k, v, head, first, n, scale, most, total, sums, MASKED: tl.constexpr,
              D: tl.constexpr, KEYS: tl.constexpr):
    scores = tl.dot(q_tile, k.load([head, first, 0]).reshape(KEYS, D).T) * scale
    if MASKED:
        scores = tl.where((first + tl.arange(0, KEYS))[None, :] < n, scores, -float("inf"))
    higher = tl.maximum(most, tl.max(scores, axis=1))
    weights = tl.exp2(scores - higher[:, None])
    mend = tl.exp2(most - higher)
    total = total * mend + tl.sum(weights, axis=1)
    sums = tl.dot(weights.to(tl.float16), v.load([head, first, 0]).reshape(KEYS, D), sums * mend[:, None])
    return higher, total, sums


@triton.jit
def attend(q, k, v, o, n, scale, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    head = tl.program_id(1)
    first_query = tl.program_id(0) * QUERIES
    q_tile = q.load([head, first_query, 0]).reshape(QUERIES, D)
    most = tl.full((QUERIES,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((QUERIES,), dtype=tl.float32)
    sums = tl.zeros((QUERIES, D), dtype=tl.float32)
    whole = n // KEYS * KEYS
    for first in range(0, whole, KEYS):
        most, total, sums = attend_to(q_tile, k, v, head, first, n, scale, most, total, sums, False, D, KEYS)
    if whole < n:
        most, total, sums = attend_to(q_tile, k, v, head, whole, n, scale, most, total, sums, True, D, KEYS)
    query = first_query + tl.arange(0, QUERIES)
    at = head.to(tl.int64) * n * D + query[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(o + at, (sums / total[:, None]).to(tl.float16), mask=query[:, None] < n)


class ModelNew(torch.nn.Module):
    def forward(self, q, k, v):
        h, n, d = q.shape
        o = torch.empty_like(q)
        scale = math.log2(math.e) / math.sqrt(d)
        tiles = [TensorDescriptor.from_tensor(x, [1, 128, d]) for x in (q, k, v)]
        attend[(triton.cdiv(n, 128), h)](*tiles, o, n, scale, D=d, QUERIES=128, KEYS=128, num_warps=8,
                                         num_stages=2)
        return o
