# Rung 3: TileLang: tiles in named memories, the pipeline a word.
#
# Changed     the program says where a tile lies (shared memory, registers) and how many stages a loop has.
#             The compiler chooses the layouts, the TMA, and which warps copy and which multiply.
# Why         between Triton, which decides where everything lies, and CUDA, which decides nothing.
# Prediction  0.88 of cuBLAS at 4096 cubed, 0.95 at 8192.
#
# Shapes      a [m, k], b [k, n], c [m, n], bf16, row-major; one compiled kernel for each set of sizes.
# Launch      one block for each tile of 128 x 256, in the order of a swizzle of 10 columns.
# Resources   256 threads that multiply; 3 stages of 48 KiB.
# Cost        2 m n k FLOPs.
# Divides     nothing: the compiler adds bounds where a tile does not fit.
# Source      the building blocks are those of TileLang's documentation.
import tilelang
import tilelang.language as T
import torch

ROWS, COLUMNS, DEPTH = 128, 256, 64


@tilelang.jit(out_idx=[-1])
def product(m, n, k):
    @T.prim_func
    def main(a: T.Tensor((m, k), "bfloat16"), b: T.Tensor((k, n), "bfloat16"),
             c: T.Tensor((m, n), "bfloat16")):
        with T.Kernel(T.ceildiv(n, COLUMNS), T.ceildiv(m, ROWS), threads=256) as (x, y):
            a_tile = T.alloc_shared((ROWS, DEPTH), "bfloat16")
            b_tile = T.alloc_shared((DEPTH, COLUMNS), "bfloat16")
            sums = T.alloc_fragment((ROWS, COLUMNS), "float32")
            T.use_swizzle(panel_size=10)
            T.clear(sums)
            for step in T.Pipelined(T.ceildiv(k, DEPTH), num_stages=3):
                T.copy(a[y * ROWS, step * DEPTH], a_tile)
                T.copy(b[step * DEPTH, x * COLUMNS], b_tile)
                T.gemm(a_tile, b_tile, sums)
            T.copy(sums, c[y * ROWS, x * COLUMNS])

    return main


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = {}

    def forward(self, a, b):
        sizes = a.shape[0], b.shape[1], a.shape[1]
        if sizes not in self.kernels:
            self.kernels[sizes] = product(*sizes)
        return self.kernels[sizes](a, b)
