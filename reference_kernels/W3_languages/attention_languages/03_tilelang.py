# Rung 3: TileLang: the loop of rung 1, with named memories and a pipeline of two stages.
#
# Changed     the author says which tiles lie in shared memory and which in registers; the compiler splits the
#             warps into one group that copies by the TMA and two that multiply.
# Why         in Triton every warp copies, multiplies and takes exponentials in turn. Warps with a role of
#             their own let copies run beside the products.
# Prediction  0.85 of cuDNN: 1.1 times rung 1.
#
# Shapes      q, k, v, o [h, n, d], fp16; d is 64 or 128; one compiled kernel for each set of sizes.
# Launch      one block for 128 queries of a head.
# Resources   256 threads that multiply; 2 stages of a tile of 128 keys and one of values.
# Cost        4 h n n d FLOPs; q and o once, k and v once for each block of a head.
# Divides     nothing: the compiler adds bounds, and keys behind the last one get a score of minus infinity.
# Source      FlashAttention-2's order of loops; the building blocks are those of TileLang's documentation.
import math

import tilelang
import tilelang.language as T
import torch

QUERIES, KEYS = 128, 128


@tilelang.jit(out_idx=[-1])
def attention(h, n, d):
    scale = math.log2(math.e) / math.sqrt(d)
    whole = T.GemmWarpPolicy.FullRow  # a warp has whole rows of scores

    @T.prim_func
    def main(q: T.Tensor((h, n, d), "float16"), k: T.Tensor((h, n, d), "float16"),
             v: T.Tensor((h, n, d), "float16"), o: T.Tensor((h, n, d), "float16")):
        with T.Kernel(T.ceildiv(n, QUERIES), h, threads=256) as (x, head):
            q_tile = T.alloc_shared((QUERIES, d), "float16")
            k_tile = T.alloc_shared((KEYS, d), "float16")
            v_tile = T.alloc_shared((KEYS, d), "float16")
            scores = T.alloc_fragment((QUERIES, KEYS), "float32")
            weights = T.alloc_fragment((QUERIES, KEYS), "float16")
            sums = T.alloc_fragment((QUERIES, d), "float32")
            most = T.alloc_fragment((QUERIES,), "float32")
            before = T.alloc_fragment((QUERIES,), "float32")
            mend = T.alloc_fragment((QUERIES,), "float32")
            part = T.alloc_fragment((QUERIES,), "float32")
            total = T.alloc_fragment((QUERIES,), "float32")
            T.copy(q[head, x * QUERIES:(x + 1) * QUERIES, :], q_tile)
            T.clear(sums)
            T.clear(total)
            T.fill(most, -T.infinity("float32"))
            for step in T.Pipelined(T.ceildiv(n, KEYS), num_stages=2):
                T.copy(k[head, step * KEYS:(step + 1) * KEYS, :], k_tile)
                for i, j in T.Parallel(QUERIES, KEYS):
                    scores[i, j] = T.if_then_else(step * KEYS + j < n, 0, -T.infinity("float32"))
                T.gemm(q_tile, k_tile, scores, transpose_B=True, policy=whole)
                T.copy(most, before)
                T.reduce_max(scores, most, dim=1, clear=False)
                for i in T.Parallel(QUERIES):
                    mend[i] = T.exp2((before[i] - most[i]) * scale)
                for i, j in T.Parallel(QUERIES, KEYS):
                    scores[i, j] = T.exp2((scores[i, j] - most[i]) * scale)
                T.reduce_sum(scores, part, dim=1)
                for i in T.Parallel(QUERIES):
                    total[i] = total[i] * mend[i] + part[i]
                T.copy(scores, weights)
                for i, j in T.Parallel(QUERIES, d):
                    sums[i, j] *= mend[i]
                T.copy(v[head, step * KEYS:(step + 1) * KEYS, :], v_tile)
                T.gemm(weights, v_tile, sums, policy=whole)
            for i, j in T.Parallel(QUERIES, d):
                sums[i, j] /= total[i]
            T.copy(sums, o[head, x * QUERIES:(x + 1) * QUERIES, :])

    return main


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = {}

    def forward(self, q, k, v):
        if q.shape not in self.kernels:
            self.kernels[q.shape] = attention(*q.shape)
        return self.kernels[q.shape](q, k, v)
