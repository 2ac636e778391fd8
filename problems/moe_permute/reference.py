"""Rows of tokens sorted by expert: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

t = 8192
h = 4096
k = 8
experts = 128
TILE = 128


class Model(nn.Module):
    """A stable sort of the slots; the rows of a are then gathered. Those without a slot are zero."""

    def forward(self, x, expert, weight):
        slots = expert.numel()
        key = torch.where(expert < 0, experts, expert).flatten()  # dropped slots go to the end
        key, order = torch.sort(key, stable=True)
        starts = torch.searchsorted(key, torch.arange(experts + 1, dtype=key.dtype, device=key.device))
        counts = starts[1:] - starts[:-1]
        tile_offsets = torch.zeros_like(starts)
        tile_offsets[1:] = ((counts + TILE - 1) // TILE).cumsum(0)
        row = torch.arange(slots, device=key.device) - starts[key] + TILE * tile_offsets[key]
        kept = key < experts

        m = (slots + (TILE - 1) * experts) // TILE * TILE
        place = torch.empty(slots, dtype=torch.int32, device=key.device)
        place[order] = torch.where(kept, row, -1).to(torch.int32)
        slot_of_row = torch.full((m + 1,), -1, device=key.device)
        slot_of_row[torch.where(kept, row, m)] = order
        slot_of_row = slot_of_row[:m]
        slot, used = slot_of_row.clamp(min=0), slot_of_row >= 0
        a = torch.where(used[:, None], x[slot // expert.shape[1]], 0)
        row_weight = torch.where(used, weight.flatten()[slot], 0)
        return a, row_weight, place.view_as(expert), counts.to(torch.int32), tile_offsets.to(torch.int32)


def get_inputs():
    expert = torch.rand(t, experts).topk(k, dim=1).indices.to(torch.int32)
    expert[torch.randperm(t)[:t // 2], k - 1] = -1
    return [torch.randn(t, h).to(torch.bfloat16), expert, torch.rand(t, k)]


def get_init_inputs():
    return []
