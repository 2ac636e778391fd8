"""Quantisation to NVFP4: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

rows = 8192
cols = 8192
BLOCK = 16
LARGEST = 6.0  # of e2m1
LARGEST_SCALE = 448.0  # of e4m3
# Between neighbours of 0, 0.5, 1, 1.5, 2, 3, 4, 6. A tie goes to the even code: down at the first, up at the
# second, and so on in turn.
MIDDLES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)


def to_e4m3(size):
    """Positive numbers to nearest, ties to even, at most 448. In float64 they stay float64."""
    size = size.clamp(max=LARGEST_SCALE)
    if size.dtype == torch.float32:
        return size.to(torch.float8_e4m3fn)
    step = torch.ldexp(torch.ones_like(size), (torch.frexp(size)[1] - 1).clamp(min=-6) - 3)
    return torch.round(size / step) * step


class Model(nn.Module):
    """Codes in pairs, the first of a byte in its low half, and a scale in e4m3 for each block of 16.

    x / scale is compared with the middle of two codes as x with their product, which fp32 holds exactly: a
    compiler may turn a quotient into a product with a reciprocal, which misses ties."""

    def forward(self, x):
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        blocks = wide.unflatten(-1, (-1, BLOCK))
        scales = to_e4m3(blocks.abs().amax(-1) / LARGEST)
        unit = scales.to(wide.dtype)[..., None]
        size = blocks.abs()
        codes = (blocks < 0).to(torch.uint8) * 8
        for place, middle in enumerate(MIDDLES):
            codes = codes + (size > middle * unit if place % 2 == 0 else size >= middle * unit).to(torch.uint8)
        codes = codes * (unit > 0).to(torch.uint8)
        pairs = codes.flatten(-2).unflatten(-1, (-1, 2))
        return pairs[..., 0] | pairs[..., 1] << 4, scales


def get_inputs():
    return [torch.randn(rows, cols, dtype=torch.bfloat16)]


def get_init_inputs():
    return []
