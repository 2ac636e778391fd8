"""Matrix product in fp8 with block scales: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

m = 4096
k = 16384
n = 7168
BLOCK = 128


def blocks(extent):
    return (extent + BLOCK - 1) // BLOCK


class Model(nn.Module):
    """c = (a * sfa) @ (b * sfb)^T: fp8 in, a scale for each block, products and sums in fp32, bf16 out."""

    def forward(self, a, sfa, b, sfb):
        n, k = b.shape
        columns = sfa.repeat_interleave(BLOCK, 1)[:, :k]
        both = sfb.repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)[:, :k]
        c = torch.matmul(a.to(sfa.dtype) * columns, (b.to(sfb.dtype) * both).T)
        return c.to(torch.bfloat16) if c.dtype == torch.float32 else c  # in float64 nothing is rounded


class Library_cublaslt(nn.Module):
    """The same by cuBLASLt's block mode, through PyTorch. It takes the scales of a column by column, and those of b
    in rows of a multiple of four; bringing them there is part of the work. m has to be a multiple of four."""

    @staticmethod
    def library():
        F.ScalingType.BlockWise1x128, F.scaled_mm  # AttributeError: PyTorch is older than 2.10
        return "cuBLASLt's block mode, through PyTorch"

    def forward(self, a, sfa, b, sfb):
        sfa = sfa.t().contiguous().t()
        if sfb.shape[1] % 4:
            sfb = F.pad(sfb, (0, -sfb.shape[1] % 4))
        return F.scaled_mm(a, b.t(), sfa, F.ScalingType.BlockWise1x128, sfb.t(), F.ScalingType.BlockWise128x128,
                           output_dtype=torch.bfloat16)


class Library_deepgemm(nn.Module):
    """The same by DeepGEMM, which lays the scales of a out by itself."""

    @staticmethod
    def library():
        import deep_gemm
        return f"DeepGEMM {getattr(deep_gemm, '__version__', '')}".strip()

    def __init__(self):
        super().__init__()
        import deep_gemm
        self.multiply = deep_gemm.fp8_gemm_nt

    def forward(self, a, sfa, b, sfb):
        c = torch.empty(a.shape[0], b.shape[0], dtype=torch.bfloat16, device=a.device)
        self.multiply((a, sfa), (b, sfb), c)
        return c


def get_inputs():
    return [torch.randn(m, k).to(torch.float8_e4m3fn), torch.rand(m, blocks(k)) + 0.5,
            torch.randn(n, k).to(torch.float8_e4m3fn), torch.rand(blocks(n), blocks(k)) + 0.5]


def get_init_inputs():
    return []
