# Rung 2: the same with tensor descriptors.
#
# Changed     k and v come by the TMA.
# Why         rung 1 spends instructions on the addresses of every tile, next to exponentials that it must
#             wait for.
# Prediction  1.15 times rung 1.
#
# Shapes      q, k, v, o [h, n, d], fp16; d is 64 or 128.
# Launch      one program for 128 queries of a head.
# Resources   8 warps; 4 stages (d 64) or 3 (d 128) of a tile of d keys and one of values.
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
    k_tile = k.load([head, first, 0]).reshape(KEYS, D).T
    v_tile = v.load([head, first, 0]).reshape(KEYS, D)
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
        tiles = [TensorDescriptor.from_tensor(x, [1, rows, d]) for x, rows in ((q, 128), (k, d), (v, d))]
        attend[(triton.cdiv(n, 128), h)](*tiles, o, n, scale, D=d, QUERIES=128, KEYS=d, num_warps=8,
                                         num_stages=4 if d == 64 else 3)
        return o
