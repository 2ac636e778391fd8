"""Matrix product with bias and GELU, bf16: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

m = 4096
k = 4096
n = 16384


class Model(nn.Module):
    """c = gelu(a @ weight + bias), the tanh form: bf16 in and out, sums in fp32."""

    def __init__(self, k, n):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(k, n, dtype=torch.bfloat16) * 0.05)
        self.bias = nn.Parameter(torch.randn(n, dtype=torch.bfloat16) * 0.5)

    def forward(self, a):
        return F.gelu(torch.addmm(self.bias, a, self.weight), approximate="tanh")


class Library_cublaslt(Model):
    """The same by cuBLASLt's epilogue GELU_BIAS, through PyTorch, with the algorithm that PyTorch asks for."""

    @staticmethod
    def library():
        torch._addmm_activation  # AttributeError: PyTorch is older than 1.12
        return "cuBLASLt's GELU_BIAS, through PyTorch"

    def forward(self, a):
        return torch._addmm_activation(self.bias, a, self.weight, use_gelu=True)


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16)]


def get_init_inputs():
    return [k, n]
