"""Matrix times vector in NVFP4: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

l = 1
m = 7168
k = 16384
BLOCK = 16


def dequantised(codes, scales):
    """Two codes a byte, the first in its low half, a scale for each 16: [.., k / 2] bytes to [.., k] numbers."""
    wide = scales.dtype if scales.dtype == torch.float64 else torch.float32
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=wide, device=codes.device)
    table = torch.cat([table, -table])
    codes = torch.stack((codes & 15, codes >> 4), dim=-1).flatten(-2)
    numbers = table[codes.long()].unflatten(-1, (-1, BLOCK))
    return (numbers * scales.to(wide)[..., None]).flatten(-2)


class Model(nn.Module):
    """y = a @ x for each of l matrices, both dequantised: products and sums in fp32, bf16 out."""

    def forward(self, a, sfa, x, sfx):
        y = torch.matmul(dequantised(a, sfa), dequantised(x, sfx)[..., None])[..., 0]
        return y if y.dtype == torch.float64 else y.to(torch.bfloat16)


def get_inputs():
    return [torch.randint(0, 256, (l, m, k // 2), dtype=torch.uint8),
            (torch.rand(l, m, k // BLOCK) + 0.5).to(torch.float8_e4m3fn),
            torch.randint(0, 256, (l, k // 2), dtype=torch.uint8),
            (torch.rand(l, k // BLOCK) + 0.5).to(torch.float8_e4m3fn)]


def get_init_inputs():
    return []
