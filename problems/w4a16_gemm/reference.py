"""Matrix product with weights of 4 bits: the specification, as PyTorch runs it eagerly."""

import torch
import torch.nn as nn

m = 16
k = 8192
n = 8192
GROUP = 128  # codes of a row that share a scale


def unpacked(codes):
    """Two codes a byte, the first in its low half: [n, k / 2] bytes to [n, k] signed codes."""
    codes = codes.to(torch.uint8) ^ 0x88  # code + 8 in both halves
    return torch.stack((codes & 15, codes >> 4), dim=-1).flatten(-2).to(torch.int8) - 8


class Model(nn.Module):
    """y = x @ w^T, w = code * scale: bf16 in, sums in fp32, bf16 out."""

    def __init__(self, k, n):
        super().__init__()
        codes = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8)
        self.codes = nn.Parameter(codes, requires_grad=False)
        self.scales = nn.Parameter(torch.randint(16, 32, (n, k // GROUP)).to(torch.bfloat16) / 2048)

    def forward(self, x):
        levels = unpacked(self.codes).to(x.dtype)
        weight = levels.view(*self.scales.shape, GROUP) * self.scales[..., None]
        return torch.matmul(x, weight.flatten(1).t())


def vllm_kernels():
    """vLLM's compiled kernels, without the rest of vLLM: torch.ops._C, and vLLM's version."""
    import importlib.metadata
    import importlib.util
    import os

    found = importlib.util.find_spec("vllm")
    if found is None:
        raise ImportError("No module named 'vllm'")
    torch.ops.load_library(os.path.join(list(found.submodule_search_locations)[0],
                                        "_C_stable_libtorch.abi3.so"))
    try:
        version = importlib.metadata.version("vllm")
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return torch.ops._C, version


# vLLM's kernels want code + 8. Their number for that type (scalar_types.uint4b8: unsigned, 4 bits, zero point 8): no
# exponent, 4 bits of mantissa, no sign, the bias from bit 17 on, NaN as in IEEE 754 (bit 50).
UINT4B8 = 4 << 8 | 8 << 17 | 1 << 50


class Packed(Model):
    """Codes in GPTQ's order: eight codes of a column of w^T in an int32, the first in the lowest bits."""

    @classmethod
    def library(cls):
        return f"{cls.__name__.split('_')[1].capitalize()} (vLLM {vllm_kernels()[1]})"

    def __init__(self, k, n):
        super().__init__(k, n)
        self.operators = vllm_kernels()[0]
        self.prepared = None

    def words(self):
        """[k / 8, n] int32: a row of codes is a row of int32 already, since both begin with the lowest bits. vLLM's
        codes are larger by 8: the top bit of each is the other one."""
        return (self.codes.data ^ 0x88).contiguous().view(torch.int32).t()


class Library_marlin(Packed):
    """vLLM's Marlin. prepare() repacks; it is not timed, as a kernel's prepare() is not."""

    def prepare(self):
        rows, columns = self.codes.shape[0], self.codes.shape[1] * 2
        device = self.codes.device
        nothing = torch.empty(0, dtype=torch.int32, device=device)
        weights = self.operators.gptq_marlin_repack(self.words().contiguous(), nothing, columns, rows, 4, False)
        order = [i + 8 * j for i in range(8) for j in range(8)]  # of 64 scales, as Marlin's fragments want them
        scales = self.scales.data.t().contiguous().view(-1, 64)[:, order].reshape(-1, rows).contiguous()
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        locks = torch.zeros(processors * 4, dtype=torch.int32, device=device)
        self.prepared = weights, scales, locks

    def forward(self, x):
        if self.prepared is None:
            self.prepare()
        weights, scales, locks = self.prepared
        rows, columns = x.shape
        # No output, bias, scales of x, global scale, zero points, order of groups; then the type of the codes,
        # the sizes, k whole, no atomics, sums in fp32, zero points not as floats.
        return self.operators.marlin_gemm(x, None, weights, None, scales, None, None, None, None, None, locks,
                                          UINT4B8, rows, self.codes.shape[0], columns, True, False, True, False)


class Library_machete(Packed):
    """vLLM's Machete, for Hopper. prepare() repacks."""

    def prepare(self):
        words = self.words().t().contiguous().t()  # column by column
        weights = self.operators.machete_prepack_B(words, torch.bfloat16, UINT4B8, torch.bfloat16)
        self.prepared = weights, self.scales.data.t().contiguous()

    def forward(self, x):
        if self.prepared is None:
            self.prepare()
        weights, scales = self.prepared
        return self.operators.machete_mm(x, weights, UINT4B8, None, scales, None, GROUP, None, None, None)


def get_inputs():
    return [torch.randn(m, k, dtype=torch.bfloat16)]


def get_init_inputs():
    return [k, n]
