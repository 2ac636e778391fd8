# Rung 3: TileLang: the row is a fragment, the reductions are words.
#
# Changed     from CuTe-DSL: no threads, no shuffles. A fragment is spread over the threads by the compiler,
#             which also writes the reductions.
# Why         the lines of rung 1, with the memory of a value named.
# Prediction  0.95 of rung 1: bounds that the compiler cannot prove may cost wide loads.
# Came        175 µs on an H100, 3.07 TB/s: 1.287 of PyTorch, 1.02 of the CUDA rung.
#
# Shapes      x [rows, cols], y [rows, cols], fp32; one compiled kernel for each shape.
# Launch      one block for each row; 32 to 1024 threads, of 16 elements each where there are enough.
# Resources   the row in registers, up to 65536 elements.
# Cost        8 rows cols bytes; 8 FLOPs an element.
# Divides     nothing: the row is padded to a multiple of the threads with minus infinity.
# Source      the building blocks are those of TileLang's documentation.
import math

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def softmax(rows, cols):
    threads = min(1024, max(32, tilelang.next_power_of_2(cols) // 16))
    width = -(-cols // (4 * threads)) * 4 * threads

    @T.prim_func
    def main(x: T.Tensor((rows, cols), "float32"), y: T.Tensor((rows, cols), "float32")):
        with T.Kernel(rows, threads=threads) as row:
            values = T.alloc_fragment((1, width), "float32")
            most = T.alloc_fragment((1,), "float32")
            total = T.alloc_fragment((1,), "float32")
            for i, j in T.Parallel(1, width):
                values[i, j] = T.if_then_else(j < cols, x[row, j], -T.infinity("float32"))
            T.reduce_max(values, most, dim=1)
            for i, j in T.Parallel(1, width):
                values[i, j] = T.exp2((values[i, j] - most[i]) * math.log2(math.e))
            T.reduce_sum(values, total, dim=1)
            for i, j in T.Parallel(1, width):
                if j < cols:
                    y[row, j] = values[i, j] / total[i]

    return main


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = {}

    def forward(self, x):
        if x.shape not in self.kernels:
            self.kernels[x.shape] = softmax(*x.shape)
        return self.kernels[x.shape](x)
