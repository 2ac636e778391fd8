"""Gradients of attention from its logsumexp: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn

h = 16
n = 4096
d = 64
hk = 16


class Model(nn.Module):
    """dq, dk and dv of o = softmax(q k^T / sqrt(d)) v for each head. The weights are computed again from the
    scores and lse, the logsumexp of each row; here lse is an input like the others. h / hk heads of q share a
    head of k and v: as one matrix of all their rows, its products with k sum dk and dv over these heads."""

    def forward(self, q, k, v, o, dout, lse):
        shape, (heads, _, d) = q.shape, k.shape
        q, o, dout = (x.reshape(heads, -1, d) for x in (q, o, dout))
        lse = lse.reshape(heads, -1, 1)
        factor = 1 / math.sqrt(d)
        weights = torch.exp(torch.matmul(q, k.transpose(1, 2)).to(lse.dtype) * factor - lse)
        delta = (dout.to(lse.dtype) * o.to(lse.dtype)).sum(-1, keepdim=True)
        gradients = weights * (torch.matmul(dout, v.transpose(1, 2)).to(lse.dtype) - delta)
        weights, gradients = weights.to(q.dtype), (gradients * factor).to(q.dtype)
        dq = torch.matmul(gradients, k)
        dk = torch.matmul(gradients.transpose(1, 2), q)
        dv = torch.matmul(weights.transpose(1, 2), dout)
        return dq.reshape(shape), dk, dv


class Library_fa2(nn.Module):
    """The same by FlashAttention-2, which is part of PyTorch."""

    @staticmethod
    def library():
        return f"FlashAttention-2 in PyTorch {torch.__version__}"

    def __init__(self):
        super().__init__()
        self.random = None

    def forward(self, q, k, v, o, dout, lse):
        if self.random is None:  # the state of dropout, which is off
            self.random = torch.zeros(2, dtype=torch.uint64, device=q.device), torch.zeros((), device=q.device)
        length = q.shape[1]
        q, k, v, o, dout = (x[None] for x in (q, k, v, o, dout))
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_backward(
            dout, q, k, v, o, lse[None], None, None, length, length, 0.0, False, *self.random)
        return dq[0], dk[0], dv[0]


class Library_cudnn(nn.Module):
    """The same by cuDNN, as PyTorch calls it."""

    @staticmethod
    def library():
        return f"cuDNN {torch.backends.cudnn.version()} in PyTorch {torch.__version__}"

    def __init__(self):
        super().__init__()
        self.random = None

    def forward(self, q, k, v, o, dout, lse):
        if self.random is None:  # the state of dropout, which is off
            self.random = [torch.zeros((), dtype=torch.int64, device=q.device) for _ in range(2)]
        length = q.shape[1]
        q, k, v, o, dout = (x[None] for x in (q, k, v, o, dout))
        dq, dk, dv = torch.ops.aten._scaled_dot_product_cudnn_attention_backward(
            dout, q, k, v, o, lse[None, :, :, None], *self.random, None, None, None, length, length, 0.0, False)
        return dq[0], dk[0], dv[0]


def get_inputs():
    """lse as a row of some thousand keys has it: between 9 and 10."""
    q, k = (torch.rand(heads, n, d) * 3.5 - 1.75 for heads in (h, hk))
    v, o, dout = (torch.randn(heads, n, d) for heads in (hk, h, h))
    return [x.to(torch.bfloat16) for x in (q, k, v, o, dout)] + [torch.rand(h, n) + 9]


def get_init_inputs():
    return []
