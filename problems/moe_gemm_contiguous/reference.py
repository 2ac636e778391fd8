"""Matrix products of a mixture of experts in fp8: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

m = 32768
k = 7168
experts = 4
n = 4096
BLOCK = 128


def blocks(extent):
    return (extent + BLOCK - 1) // BLOCK


class Model(nn.Module):
    """The rows of each expert times its b, both dequantised: fp8 in, a scale for each block, products and sums in
    fp32 (operands rounded to bf16 would not keep the tolerance), bf16 out."""

    def forward(self, a, sfa, b, sfb, tile_offsets):
        _, n, k = b.shape
        exact = sfa.dtype == torch.float64  # then nothing is rounded
        c = torch.empty(a.shape[0], n, dtype=torch.float64 if exact else torch.bfloat16, device=a.device)
        ends = [BLOCK * int(end) for end in tile_offsets.tolist()]
        for expert, (first, last) in enumerate(zip(ends, ends[1:])):
            if first == last:
                continue
            columns = sfa[first:last].repeat_interleave(BLOCK, 1)[:, :k]
            both = sfb[expert].repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)[:, :k]
            c[first:last] = (a[first:last].to(sfa.dtype) * columns) @ (b[expert].to(sfb.dtype) * both).T
        return c


class Library_deepgemm(nn.Module):
    """The same by DeepGEMM's grouped product in contiguous layout. It wants the expert of each row, and lays the
    scales of a out by itself; both are part of the work."""

    @staticmethod
    def library():
        import deep_gemm
        return f"DeepGEMM {getattr(deep_gemm, '__version__', '')}".strip()

    def __init__(self):
        super().__init__()
        import deep_gemm
        self.multiply = deep_gemm.m_grouped_fp8_gemm_nt_contiguous

    def forward(self, a, sfa, b, sfb, tile_offsets):
        rows = torch.arange(a.shape[0], dtype=torch.int32, device=a.device)
        expert_of_row = torch.searchsorted(tile_offsets[1:] * BLOCK, rows, right=True, out_int32=True)
        c = torch.empty(a.shape[0], b.shape[1], dtype=torch.bfloat16, device=a.device)
        self.multiply((a, sfa), (b, sfb), c, expert_of_row)
        return c


def get_inputs():
    cuts = torch.randint(0, m // BLOCK + 1, (experts - 1,)).sort().values
    tile_offsets = torch.cat([torch.tensor([0]), cuts, torch.tensor([m // BLOCK])]).to(torch.int32)
    return [torch.randn(m, k).to(torch.float8_e4m3fn), torch.rand(m, blocks(k)) + 0.5,
            torch.randn(experts, n, k).to(torch.float8_e4m3fn), torch.rand(experts, blocks(n), blocks(k)) + 0.5,
            tile_offsets]


def get_init_inputs():
    return []
