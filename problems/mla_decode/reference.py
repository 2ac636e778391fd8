"""Multi-head latent attention of new tokens over a paged cache: the specification, as PyTorch runs it eagerly."""

import math

import torch
import torch.nn as nn

b = 128
s_q = 1
h = 128
max_pages = 128

PAGE, KEY, VALUE = 64, 576, 512


class Model(nn.Module):
    """o = softmax(q c^T / 24) c[:, :512] over the tokens that a new token sees; zeros where there is none."""

    def forward(self, q, cache, block_table, lengths):
        wide = torch.promote_types(q.dtype, torch.float32)
        c = cache[block_table.long()].flatten(1, 2)
        slots = torch.arange(c.shape[1], device=c.device)
        # What no sequence uses is NaN, and a mask adds to it or multiplies it by zero.
        c = c.masked_fill((slots >= lengths[:, None])[:, :, None], 0).to(wide)
        later = torch.arange(q.shape[1] - 1, -1, -1, device=q.device)
        unseen = slots >= (lengths[:, None] - later)[:, :, None]
        # The heads of a new token are rows of one matrix. Scores and weights are fp32, as in fused kernels.
        scores = torch.matmul(q.flatten(1, 2).to(wide), c.transpose(1, 2)) / math.sqrt(KEY)
        scores = scores.unflatten(1, q.shape[1:3]).masked_fill(unseen[:, :, None], float("-inf"))
        weights = torch.softmax(scores, dim=-1).flatten(1, 2)
        o = torch.matmul(weights, c[:, :, :VALUE]).to(q.dtype).unflatten(1, q.shape[1:3])
        return o.masked_fill((lengths[:, None] <= later)[:, :, None, None], 0)


class Library_flashmla(nn.Module):
    """The same by FlashMLA on the pages as they lie: its own package, or vLLM's build of it (0.25)."""

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
        return "FlashMLA, schedule included" if own else "FlashMLA, vLLM's build, schedule included"

    def __init__(self):
        super().__init__()
        self.own = self.module()

    def forward(self, q, cache, block_table, lengths):
        # The schedule depends on the lengths, which only the GPU knows: the library makes it in every call.
        schedule = self.own.get_mla_metadata()[0]
        return self.own.flash_mla_with_kvcache(q, cache[:, :, None], block_table, lengths, VALUE, schedule,
                                               causal=q.shape[1] > 1)[0]


def get_inputs():
    lengths = torch.linspace(0, max_pages * PAGE, b).round().int()[torch.randperm(b)]
    block_table = torch.randperm(b * max_pages, dtype=torch.int32).view(b, max_pages)
    there = torch.empty(b * max_pages, PAGE, dtype=torch.bool)
    slots = torch.arange(max_pages * PAGE).view(max_pages, PAGE)
    there[block_table.long()] = slots < lengths[:, None, None]
    cache = torch.randn(b * max_pages, PAGE, KEY, dtype=torch.bfloat16).masked_fill(~there[:, :, None], float("nan"))
    return [torch.randn(b, s_q, h, KEY, dtype=torch.bfloat16), cache, block_table, lengths]


def get_init_inputs():
    return []
