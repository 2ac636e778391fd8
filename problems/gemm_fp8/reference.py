"""Matrix product in fp8 with a scale for each matrix: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

m = 8192
k = 8192
n = 8192


class Model(nn.Module):
    """c = (a * sa) @ (b * sb)^T: fp8 in, one scale for each matrix, products and sums in fp32, bf16 out."""

    def forward(self, a, sa, b, sb):
        c = torch.matmul(a.to(sa.dtype), b.to(sb.dtype).T) * (sa * sb)
        return c.to(torch.bfloat16) if c.dtype == torch.float32 else c  # in float64 nothing is rounded


class Library_cublaslt(nn.Module):
    """The same by cuBLASLt through PyTorch, with fast sums: all of k is added in the tensor cores. n has to be a
    multiple of 16."""

    @staticmethod
    def library():
        F.ScalingType.TensorWise, F.scaled_mm  # AttributeError: PyTorch is older than 2.10
        return "cuBLASLt with fast sums, through PyTorch"

    def forward(self, a, sa, b, sb):
        return F.scaled_mm(a, b.t(), sa, F.ScalingType.TensorWise, sb, F.ScalingType.TensorWise,
                           output_dtype=torch.bfloat16, use_fast_accum=True)


def get_inputs():
    return [torch.randn(m, k).to(torch.float8_e4m3fn), torch.rand(1) + 0.5,
            torch.randn(n, k).to(torch.float8_e4m3fn), torch.rand(1) + 0.5]


def get_init_inputs():
    return []
