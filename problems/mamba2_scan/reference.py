"""Mamba-2's scan in chunks: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn
import torch.nn.functional as F

b = 4
l = 4096
h = 64
g = 1
CHUNK = 128


class Model(nn.Module):
    """state[t] = exp(dt a) state[t-1] + dt x (outer) into, y[t] = state[t] . out_of; y, and the last state."""

    def __init__(self, h):
        super().__init__()
        self.a = nn.Parameter(-1 - 15 * torch.rand(h))

    def forward(self, x, dt, into, out_of):
        batch, steps, heads, channels = x.shape
        wide = torch.promote_types(x.dtype, torch.float32)
        missing = -steps % CHUNK  # steps with dt = 0 change nothing
        x, into, out_of = (F.pad(t, (0, 0, 0, 0, 0, missing)) for t in (x, into, out_of))
        dt = F.pad(dt.to(wide), (0, 0, 0, missing))
        chunks = x.shape[1] // CHUNK

        def split(t):  # [batch, head or group, chunk, step, ...]
            return t.unflatten(1, (chunks, CHUNK)).movedim(3, 1)

        per_group = heads // into.shape[2]
        x, dt, into, out_of = split(x), split(dt), split(into), split(out_of)
        passed = torch.cumsum(dt * self.a.to(wide)[:, None, None], dim=-1)  # the logarithm of the decay in a chunk
        later = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=x.device).tril()
        decay = (passed.unsqueeze(-1) - passed.unsqueeze(-2)).masked_fill(~later, -torch.inf).exp()

        # Within chunks: scores between steps, weighted by decays.
        scores = (out_of @ into.transpose(-1, -2)).repeat_interleave(per_group, dim=1)
        weights = (scores * decay * dt.unsqueeze(-2)).to(x.dtype)
        y = weights @ x

        # What each chunk adds to the state, and the state at its beginning.
        into, out_of = into.repeat_interleave(per_group, dim=1), out_of.repeat_interleave(per_group, dim=1)
        left = (passed[..., -1:] - passed).exp() * dt
        added = ((x * left.unsqueeze(-1)).to(x.dtype).transpose(-1, -2) @ into).to(wide)
        state = torch.zeros_like(added[:, :, 0])
        starts = []
        for chunk in range(chunks):
            starts.append(state)
            state = state * passed[:, :, chunk, -1].exp()[..., None, None] + added[:, :, chunk]
        starts = torch.stack(starts, dim=2)
        y = y + (out_of @ starts.to(x.dtype).transpose(-1, -2)) * passed.exp().unsqueeze(-1)
        return y.to(x.dtype).movedim(1, 3).flatten(1, 2)[:, :steps].contiguous(), state


def get_inputs():
    return [
        torch.randn(b, l, h, 64, dtype=torch.bfloat16),
        torch.rand(b, l, h) * 0.099 + 0.001,
        torch.randn(b, l, g, 128, dtype=torch.bfloat16),
        torch.randn(b, l, g, 128, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return [h]
