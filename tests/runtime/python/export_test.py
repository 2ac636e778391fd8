"""Triton kernels as CUDA (harness/runtime/python/worker/export.py): which sizes a launch() stands for, what it
launches there, and what cannot be exported.

The part that compiles is skipped (exit code 77 where nothing else ran) if this python3 lacks PyTorch, NumPy or
Triton; `export_test.py --sizes` needs none of them.
"""

import math
import pathlib
import re
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "harness/runtime/python/worker"))
import export  # noqa: E402
from export import Call, Size  # noqa: E402
from worker import Refusal  # noqa: E402

# What the C++ of launch() says is also Python, if these are there.
CXX = {"floor_div": lambda a, b: a // b, "floor_mod": lambda a, b: a % b}


def value_of(text, **sizes):
    return eval(text, dict(CXX), sizes)


class Sizes(unittest.TestCase):
    def setUp(self):
        self.call = Size.call = Call()
        self.m = Size(48, "m", lambda sizes: sizes["m"])
        self.n = Size(1000, "n", lambda sizes: sizes["n"])

    def same(self, size, compute):
        """`size` is compute(m, n) as a number, as C++, and for other sizes."""
        self.assertEqual(size.value, compute(48, 1000))
        for m in range(1, 40, 3):
            for n in range(1, 300, 17):
                self.assertEqual(value_of(size.text, m=m, n=n), compute(m, n))
                self.assertEqual(size.at({"m": m, "n": n}), compute(m, n))

    def test_arithmetic_is_kept_for_any_size(self):
        m, n = self.m, self.n
        self.same((m + 127) // 128 * ((n + 255) // 256), lambda m, n: (m + 127) // 128 * ((n + 255) // 256))
        self.same(-(-n // 7) % m, lambda m, n: -(-n // 7) % m)
        self.same(5 - m, lambda m, n: 5 - m)
        self.same(3 * m * n, lambda m, n: 3 * m * n)
        self.same(math.ceil(n / m), lambda m, n: -(-n // m))
        self.same(math.floor(n / 16), lambda m, n: n // 16)
        self.assertEqual(self.call.conditions, {})

    def test_a_comparison_holds_for_the_sizes_with_its_outcome(self):
        self.assertEqual(min(32, max(4, self.n // 64)).value, 15)
        self.assertTrue(self.call.fits({"m": 1, "n": 64 * 31}))
        self.assertFalse(self.call.fits({"m": 1, "n": 64 * 32}))
        self.assertFalse(self.call.fits({"m": 1, "n": 64 * 4}))
        self.assertTrue(self.m % 16 == 0)
        self.assertFalse(self.call.fits({"m": 40, "n": 1000}))

    def test_a_number_that_python_needs_holds_for_itself(self):
        for use in (lambda: list(range(self.m)), lambda: float(self.m), lambda: self.m.bit_length(),
                    lambda: 2 ** self.m, lambda: self.m | 1, lambda: {self.m: 0}, lambda: math.sqrt(self.m),
                    lambda: self.m * 0.5, lambda: self.m / self.n * 2):
            with self.subTest(use=use):
                self.call.conditions.clear()
                use()
                self.assertTrue(self.call.fits({"m": 48, "n": 1000}))
                self.assertFalse(self.call.fits({"m": 49, "n": 1000}))


def with_triton():
    import numpy  # noqa: F401
    import torch
    import triton  # noqa: F401

    return torch


REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return x

def get_init_inputs():
    return []
"""

KERNELS = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, FACTOR * tl.load(x + at, mask=at < n), mask=at < n)


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], ["n"])
@triton.jit
def tuned(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n), mask=at < n)

"""


class Exported(unittest.TestCase):
    exporter = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "reference.py").write_text(REFERENCE)

    def export(self, forward, sizes=({"rows": 64, "cols": 256},), constructor=""):
        from model import Subject

        candidate = self.path / "kernel.py"
        body = "\n".join("        " + line for line in forward.strip().split("\n"))
        first = "".join("        " + line + "\n" for line in constructor.split("\n"))
        candidate.write_text(f"{KERNELS}\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n"
                             f"        super().__init__()\n{first}\n    def forward(self, x):\n{body}\n")
        if Exported.exporter is None:
            Exported.exporter = export.Exporter(types.SimpleNamespace(
                candidate=str(candidate), reference=str(self.path / "reference.py"), device="cpu",
                arm="eager", precision="fp32"))
            Exported.exporter.hello()
        exporter = Exported.exporter
        exporter._subject = Subject(str(self.path / "reference.py"), str(candidate), "eager", "cpu")
        tensor = {"dtype": "f32", "shape": ["rows", "cols"], "python": ""}
        return exporter.export({"signature": [{"name": "x", "role": "input", **tensor},
                                              {"name": "y", "role": "output", **tensor}],
                                "sizes": list(sizes), "capability": 90, "folder": str(self.path)})

    def versions(self, body, **sizes):
        """(name of the kernel, grid) of the first version whose conditions hold, as launch() chooses."""
        for condition, block in re.findall(r"  if \(([^\n]*)\) {\n(.*?)    return;\n  }", body, re.DOTALL):
            if all(value_of(part, **sizes) for part in condition.split(" && ")):
                return [(int(index), value_of(x, **sizes)) for index, x in
                        re.findall(r"start\((\d+), (.*?), 1, 1, \d+, \d+, false", block)]
        return None

    COPY = "y = torch.empty_like(x)\nn = x.numel()\n"

    def test_a_launch_follows_the_sizes(self):
        answer = self.export(self.COPY + "scale[(triton.cdiv(n, 64),)](x, y, n, FACTOR=2.0, BLOCK=64)\nreturn y",
                             [{"rows": 64, "cols": 256}, {"rows": 3, "cols": 5}])
        self.assertEqual((answer["covered"], answer["names"]), (2, ["scale_0", "scale_1"]))
        self.assertEqual(self.versions(answer["body"], rows=7, cols=16), [(0, 2)])
        self.assertEqual(self.versions(answer["body"], rows=7, cols=17), [(1, 2)])
        self.assertIsNone(self.versions(answer["body"], rows=1 << 16, cols=1 << 16))  # n is not 32 bits
        code = (self.path / "0.cubin").read_bytes()
        self.assertTrue(code.startswith(b"\x7fELF") and b"scale_0" in code)

    def test_a_constant_that_follows_a_size_makes_a_version_for_each(self):
        answer = self.export(self.COPY + "scale[(x.shape[0],)](x, y, n, FACTOR=2.0, "
                             "BLOCK=triton.next_power_of_2(x.shape[1]))\nreturn y",
                             [{"rows": 64, "cols": cols} for cols in (256, 255, 129, 100)])
        self.assertEqual(answer["covered"], 4)
        self.assertEqual(len({self.versions(answer["body"], rows=2, cols=cols)[0][0] for cols in (144, 256)}), 1)
        self.assertNotEqual(self.versions(answer["body"], rows=2, cols=144),
                            self.versions(answer["body"], rows=2, cols=80))
        self.assertIsNone(self.versions(answer["body"], rows=2, cols=512))

    def test_a_constructor_may_count_multiprocessors(self):
        answer = self.export(self.COPY + "scale[(self.blocks,)](x, y, n, FACTOR=2.0, BLOCK=64)\nreturn y",
                             constructor="self.blocks = min(1000, 2 * torch.cuda.get_device_properties(0)"
                                         ".multi_processor_count)\nself.real = torch.zeros(3)")
        self.assertIn("start(0, (2 * multiprocessors), 1, 1", answer["body"])
        self.assertIn("(2 * multiprocessors) < 1000", answer["body"])

    def test_memory_of_its_own_is_allocated_and_cleared(self):
        body = self.export("t = torch.zeros((x.shape[0], 3), dtype=torch.int32)\n" + self.COPY +
                           "scale[(1,)](x, t, 7, FACTOR=1, BLOCK=64)\n"
                           "scale[(1,)](t, y, n, FACTOR=1, BLOCK=64)\nreturn y")["body"]
        self.assertIn("cudaMallocAsync(&memory0, ((rows * 3) * 4), stream)", body)
        self.assertIn("cudaMemsetAsync(memory0, 0, ((rows * 3) * 4), stream)", body)
        self.assertIn("cudaFreeAsync(memory0, stream)", body)
        self.assertNotIn("memory1", body)  # the result

    def test_what_cannot_be_exported_is_named(self):
        for forward, words in (("return torch.matmul(x, x)", "torch.matmul"),
                               ("return x.sum(0)", ".sum of a tensor"),
                               ("return x", "did not allocate"),
                               (self.COPY + "return y, y", "2 tensors"),
                               ("return torch.empty((x.shape[1], x.shape[0]))", "shape"),
                               (self.COPY + "scale[(1,)](x, y, n, FACTOR=2.0, BLOCK=64, num_ctas=2)\nreturn y",
                                "clusters"),
                               (self.COPY + "tuned[(1,)](x, y, n)\nreturn y", "2 configurations"),
                               (self.COPY + "return torch.empty(x.shape, dtype=torch.int32)", "int32")):
            with self.subTest(forward=forward), self.assertRaises(Refusal) as raised:
                self.export(forward)
            self.assertIn(words, str(raised.exception))


if __name__ == "__main__":
    if "--sizes" in sys.argv:
        unittest.main(argv=sys.argv[:1], defaultTest="Sizes")
    try:
        with_triton()
    except ImportError as missing:
        print(f"skipped: {missing} for {sys.executable} (docs/how-to/pytorch.md: Triton on a laptop)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1], defaultTest="Exported")
