"""Verification of speculative tokens: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

b = 64
gamma = 7
v = 129280


class Model(nn.Module):
    """Accepts a prefix of the draft, then draws from the residual of the first rejected row, or from p's last row. Masses
    are whole numbers, so no sum depends on its order."""

    def forward(self, draft, q, p, u):
        ahead = draft.shape[1]
        place = draft.long()[:, :, None]
        of_q, of_p = q.gather(2, place)[:, :, 0], p[:, :ahead].gather(2, place)[:, :, 0]
        accepted = u[:, :ahead].double() * of_q.double() < of_p.double()
        count = accepted.int().cumprod(dim=1).sum(dim=1)
        residual = (p[:, :ahead] - q).clamp(min=0)
        rows = torch.cat((residual, p[:, ahead:]), dim=1)
        at = count.long()[:, None, None].expand(-1, 1, p.shape[2])
        weights = (rows.gather(1, at)[:, 0] * 2.0**31).long()
        plain = (p.gather(1, at)[:, 0] * 2.0**31).long()
        weights = torch.where(weights.sum(dim=1, keepdim=True) > 0, weights, plain)
        mass = weights.cumsum(dim=1)
        target = ((u[:, ahead] * 2.0**24).long() * mass[:, -1]) >> 24
        token = (mass <= target[:, None]).sum(dim=1).to(torch.int32)
        column = torch.arange(ahead + 1, device=draft.device)[None, :]
        padded = torch.cat((draft, torch.full_like(draft[:, :1], -1)), dim=1)
        out = torch.where(column < count[:, None], padded, -1)
        return torch.where(column == count[:, None], token[:, None], out)


def rows_sum_to_one(*shape):
    rows = torch.rand(*shape)
    return rows / rows.sum(dim=-1, keepdim=True)


def get_inputs():
    return [
        torch.randperm(b * gamma, dtype=torch.int32).view(b, gamma),
        rows_sum_to_one(b, gamma, v),
        rows_sum_to_one(b, gamma + 1, v),
        torch.rand(b, gamma + 1),
    ]


def get_init_inputs():
    return []
