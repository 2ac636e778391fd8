# Rung 1: Triton: a program holds a whole row.
#
# Changed     from CUDA: no shuffles, no shared memory, no vector types. The row is one value.
# Why         a softmax that reads each element once is bound by memory: the compiler only has to emit wide
#             loads and keep the row in registers.
# Prediction  0.95 of the CUDA rung.
#
# Shapes      x [rows, cols], y [rows, cols], fp32.
# Launch      one program for each row.
# Resources   4 to 32 warps; a row in registers, up to 65536 elements.
# Cost        8 rows cols bytes; 8 FLOPs an element.
# Divides     nothing: the row is padded to a power of two and masked.
# Source      the form is that of Triton's tutorial on the fused softmax.
import torch
import triton
import triton.language as tl


@triton.jit
def softmax(x, y, cols, WIDTH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    column = tl.arange(0, WIDTH)
    inside = column < cols
    value = tl.load(x + row + column, mask=inside, other=-float("inf"))
    weight = tl.exp(value - tl.max(value, axis=0))
    tl.store(y + row + column, weight / tl.sum(weight, axis=0), mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, cols = x.shape
        y = torch.empty_like(x)
        width = triton.next_power_of_2(cols)
        softmax[(rows,)](x, y, cols, WIDTH=width, num_warps=min(32, max(4, width // 512)))
        return y
