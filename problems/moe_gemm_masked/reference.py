"""Matrix products of a mixture of experts in fp8, in masked layout: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

groups = 32
max_m = 256
k = 7168
n = 4096
BLOCK = 128


def blocks(extent):
    return (extent + BLOCK - 1) // BLOCK


class Model(nn.Module):
    """The rows of each group times its b, both dequantised: fp8 in, a scale for each block, products and sums in
    fp32 (operands rounded to bf16 would not keep the tolerance), bf16 out. Rows that are not used are zero."""

    def forward(self, a, sfa, b, sfb, masked_m):
        _, rows, k = a.shape
        n = b.shape[1]
        exact = sfa.dtype == torch.float64  # then nothing is rounded
        dtype = torch.float64 if exact else torch.bfloat16
        c = torch.zeros(a.shape[0], rows, n, dtype=dtype, device=a.device)
        for group, used in enumerate(masked_m.tolist()):
            if used == 0:
                continue
            columns = sfa[group, :used].repeat_interleave(BLOCK, 1)[:, :k]
            both = sfb[group].repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)[:, :k]
            c[group, :used] = (a[group, :used].to(sfa.dtype) * columns) @ (b[group].to(sfb.dtype) * both).T
        return c


class Library_deepgemm(nn.Module):
    """The same by DeepGEMM's grouped product in masked layout. It lays the scales of a out by itself, which is part of
    the work. It leaves rows beyond masked_m as they are, or stores what a tile has there: it does less
    than the problem asks for."""

    @staticmethod
    def library():
        import deep_gemm
        return f"DeepGEMM {getattr(deep_gemm, '__version__', '')}".strip()

    def __init__(self):
        super().__init__()
        import deep_gemm
        for name in ("m_grouped_fp8_gemm_nt_masked", "fp8_m_grouped_gemm_nt_masked"):  # newer and older versions
            if hasattr(deep_gemm, name):
                self.multiply = getattr(deep_gemm, name)
                return
        raise ImportError("this DeepGEMM has no grouped product in masked layout")

    def forward(self, a, sfa, b, sfb, masked_m):
        c = torch.empty(a.shape[0], a.shape[1], b.shape[1], dtype=torch.bfloat16, device=a.device)
        self.multiply((a, sfa), (b, sfb), c, masked_m, a.shape[1] // 2)  # the mean number of rows, a hint
        return c


def get_inputs():
    masked_m = torch.linspace(0, max_m, groups).round().to(torch.int32)[torch.randperm(groups)]
    return [torch.randn(groups, max_m, k).to(torch.float8_e4m3fn), torch.rand(groups, max_m, blocks(k)) + 0.5,
            torch.randn(groups, n, k).to(torch.float8_e4m3fn), torch.rand(groups, blocks(n), blocks(k)) + 0.5, masked_m]


def get_init_inputs():
    return []
