"""Latent attention of new tokens over lists of tokens in an fp8 cache: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn

b = 128
s_q = 2
h = 128
tokens = 524288
topk = 2048

PAGE, KEY, VALUE, BLOCK = 64, 576, 512, 128
BYTES = VALUE + 4 * (VALUE // BLOCK) + 2 * (KEY - VALUE)


def numbers_of(codes):
    """e4m3 codes as fp32. PyTorch before 2.1 has no such type."""
    if hasattr(torch, "float8_e4m3fn"):
        return codes.view(torch.float8_e4m3fn).to(torch.float32)
    exponent, mantissa = codes.int() >> 3 & 15, codes & 7
    size = torch.where(exponent == 0, mantissa * 2.0**-9, (8 + mantissa) * torch.exp2(exponent.float() - 10))
    return torch.where(codes > 127, -size, size)


def parts(rows):
    """Numbers, scales and position numbers of tokens [..., 656], as they lie in memory."""
    codes, scales, position = rows.to(torch.uint8).split([VALUE, 4 * (VALUE // BLOCK), 2 * (KEY - VALUE)], dim=-1)
    return (numbers_of(codes), scales.contiguous().view(torch.float32),
            position.contiguous().view(torch.bfloat16))


class Model(nn.Module):
    """o = softmax(q c^T / 24) c[:, :512] over the tokens of a list; zeros where it is empty."""

    def forward(self, q, cache, indices):
        wide = torch.promote_types(q.dtype, torch.float32)
        there = indices >= 0
        codes, scales, position = parts(cache[indices.clamp(min=0).long()])
        values = codes.to(wide).unflatten(-1, (-1, BLOCK)) * scales.to(wide)[..., None]
        c = torch.cat([values.flatten(-2), position.to(wide)], dim=-1)
        # Scores and weights are fp32, as in fused kernels.
        scores = torch.matmul(q.to(wide), c.transpose(-1, -2)) / math.sqrt(KEY)
        weights = torch.softmax(scores.masked_fill(~there[:, :, None], float("-inf")), dim=-1)
        o = torch.matmul(weights, c[..., :VALUE]).to(q.dtype)
        return o.masked_fill(~there.any(-1)[:, :, None, None], 0)


class Library_flashmla(nn.Module):
    """The same by FlashMLA on the cache as it lies: its own package, or vLLM's build of it (0.25)."""

    @staticmethod
    def module():
        try:
            import flash_mla
            return flash_mla
        except ImportError:
            import vllm.third_party.flashmla.flash_mla_interface as built
            return built

    @staticmethod
    def library():
        own = Library_flashmla.module().__name__ == "flash_mla"
        return "FlashMLA, schedule made once" if own else "FlashMLA, vLLM's build, schedule made once"

    def __init__(self):
        super().__init__()
        self.own = self.module()
        self.schedules = {}

    def forward(self, q, cache, indices):
        # With full lists the schedule depends on sizes alone; the library fills it in the first call.
        sizes = q.shape[:3] + indices.shape[-1:]
        if sizes not in self.schedules:
            self.schedules[sizes] = self.own.get_mla_metadata()[0]
        pages = cache.view(-1, PAGE, 1, BYTES).view(torch.float8_e4m3fn)
        return self.own.flash_mla_with_kvcache(q, pages, None, None, VALUE, self.schedules[sizes],
                                               is_fp8_kvcache=True, indices=indices)[0]


def get_inputs():
    cache = torch.empty(tokens, BYTES, dtype=torch.uint8)
    codes, scales, position = cache.split([VALUE, 4 * (VALUE // BLOCK), 2 * (KEY - VALUE)], dim=-1)
    codes.copy_(torch.randint(0, 0x78, codes.shape) + 128 * torch.randint(0, 2, codes.shape))  # below 256, no NaN
    scales.copy_(torch.exp2(torch.randint(-8, -5, (tokens, VALUE // BLOCK)).float()).view(torch.uint8))
    position.copy_(torch.randn(tokens, KEY - VALUE).bfloat16().view(torch.uint8))
    full = topk >= 2048
    counts = torch.full((b, s_q), topk) if full else torch.randint(0, topk + 1, (b, s_q))
    indices = torch.stack([torch.randperm(tokens)[:topk] for _ in range(b * s_q)]).view(b, s_q, topk)
    indices = indices.masked_fill(torch.arange(topk) >= counts[..., None], -1).int()
    return [torch.randn(b, s_q, h, KEY, dtype=torch.bfloat16), cache, indices]


def get_init_inputs():
    return []
