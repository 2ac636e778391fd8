# nvfp4_gemv with everything a parameter, so that a library may repack before the clock starts: rung 6 and
# vLLM's Marlin in one run. scripts/gpu_marlin.sh puts this behind the problem's own sizes and dequantised().

# vLLM's number for e2m1: 2 bits of exponent, 1 of mantissa, a sign, finite values only.
E2M1 = 2 | 1 << 8 | 1 << 16 | 1 << 49


class Model(nn.Module):
    """y = a @ x for each of l matrices, both dequantised: products and sums in fp32, bf16 out."""

    def __init__(self, l, m, k):
        super().__init__()

        def fixed(values):
            return nn.Parameter(values, requires_grad=False)

        self.a = fixed(torch.randint(0, 256, (l, m, k // 2), dtype=torch.uint8))
        self.sfa = fixed((torch.rand(l, m, k // BLOCK) + 0.5).to(torch.float8_e4m3fn))
        self.x = fixed(torch.randint(0, 256, (l, k // 2), dtype=torch.uint8))
        self.sfx = fixed((torch.rand(l, k // BLOCK) + 0.5).to(torch.float8_e4m3fn))

    def forward(self):
        y = torch.matmul(dequantised(self.a, self.sfa), dequantised(self.x, self.sfx)[..., None])[..., 0]
        return y if y.dtype == torch.float64 else y.to(torch.bfloat16)


class Library_marlin(Model):
    """vLLM's Marlin: weights in fp4, the vector in bf16. prepare() repacks the weights and dequantises the
    vector, neither of which is timed. A launch for each matrix."""

    @classmethod
    def library(cls):
        return "Marlin (vLLM)"

    def __init__(self, l, m, k):
        super().__init__(l, m, k)
        import importlib.util
        import os

        found = importlib.util.find_spec("vllm")
        if found is None:
            raise ImportError("No module named 'vllm'")
        torch.ops.load_library(os.path.join(list(found.submodule_search_locations)[0],
                                            "_C_stable_libtorch.abi3.so"))
        self.operators = torch.ops._C
        self.ready = []

    def prepare(self):
        device = self.a.device
        matrices, rows, k = self.a.shape[0], self.a.shape[1], self.a.shape[2] * 2
        processors = torch.cuda.get_device_properties(device).multi_processor_count
        nothing = torch.empty(0, dtype=torch.int32, device=device)
        order = [i + 8 * j for i in range(8) for j in range(8)]
        vector = dequantised(self.x.data, self.sfx.data).to(torch.bfloat16)  # at most seven bits: exact
        # A power of two that lifts the largest scale to [256, 448], and one from e2m1's exponents to bf16's.
        largest = float(self.sfa.data.float().max())
        lift = 2.0 ** int(torch.tensor(448 / largest).log2().floor())
        factor = torch.tensor([2.0 ** (126 - 7) / lift], dtype=torch.float32, device=device)
        self.ready = []
        for i in range(matrices):
            words = self.a.data[i].view(torch.int32).t().contiguous()
            weights = self.operators.gptq_marlin_repack(words, nothing, k, rows, 4, False)
            scales = self.sfa.data[i].to(torch.float16).t().contiguous().view(-1, 64)[:, order]
            scales = scales.reshape(-1, 4)[:, [0, 2, 1, 3]].reshape(-1, rows) * lift * 128
            # The bytes of a scale: fp16 without its sign and its seven lowest bits.
            scales = (scales.view(torch.int16) << 1).view(torch.uint8)[:, 1::2].contiguous()
            locks = torch.zeros(processors, dtype=torch.int32, device=device)
            self.ready.append((vector[i:i + 1], weights, scales.view(torch.float8_e4m3fn), factor, locks))

    def forward(self):
        if not self.ready:
            self.prepare()
        rows, k = self.a.shape[1], self.a.shape[2] * 2
        # No output, no bias; no scales of x; no zero points, no order of groups; then the type of the codes,
        # the sizes, k whole, no atomics, sums in fp32, zero points not as floats.
        results = [self.operators.marlin_gemm(x, None, weights, None, scales, None, factor, None, None, None,
                                              locks, E2M1, 1, rows, k, True, False, True, False)
                   for x, weights, scales, factor, locks in self.ready]
        return results[0] if len(results) == 1 else torch.cat(results)


def get_inputs():
    return []


def get_init_inputs():
    return [l, m, k]
