"""Matrix product in NVFP4, scales in tiles of 128 x 4: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

m = 8192
k = 8192
n = 8192
BLOCK, TILE = 16, 128


def dequantised(codes, tiles):
    """Two codes a byte, the first in its low half: [rows, k / 2] bytes and their scales to [rows, k] numbers."""
    wide = tiles.dtype if tiles.dtype == torch.float64 else torch.float32
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=wide, device=codes.device)
    table = torch.cat([table, -table])
    codes = torch.stack((codes & 15, codes >> 4), dim=-1).flatten(-2)
    # [row tile, column tile, row % 32, row % 128 / 32, column % 4]
    scales = tiles.to(wide).permute(0, 3, 2, 1, 4).flatten(3).flatten(0, 2)[: codes.shape[0]]
    numbers = table[codes.long()].unflatten(-1, (-1, BLOCK))
    return (numbers * scales[..., None]).flatten(-2)


class Model(nn.Module):
    """c = a @ b.T, both dequantised: products and sums in fp32, bf16 out."""

    def forward(self, a, sfa, b, sfb):
        c = torch.matmul(dequantised(a, sfa), dequantised(b, sfb).t())
        return c if c.dtype == torch.float64 else c.to(torch.bfloat16)


def codes_of(rows):
    return torch.randint(0, 256, (rows, k // 2), dtype=torch.uint8)


def scales_of(rows):
    tiles = (rows + TILE - 1) // TILE
    return (torch.rand(tiles, k // (4 * BLOCK), 32, 4, 4) + 0.5).to(torch.float8_e4m3fn)


def get_inputs():
    return [codes_of(m), scales_of(m), codes_of(n), scales_of(n)]


def get_init_inputs():
    return []
