"""Triton kernels on a CPU (harness/runtime/python/worker/interpreted.py): what is found, and what is not.

Skipped (exit code 77) where this python3 lacks PyTorch, NumPy or Triton.
"""

import os
import pathlib
import sys
import unittest

os.environ["TRITON_INTERPRET"] = "1"
sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "harness/runtime/python/worker"))
try:
    import numpy  # noqa: F401
    import torch
    import triton
    import triton.language as tl
except ImportError as missing:
    print(f"skipped: {missing} for {sys.executable} (docs/how-to/pytorch.md: Triton on a laptop)")
    sys.exit(77)
import interpreted  # noqa: E402

WATCH, _ = interpreted.install([os.path.abspath(__file__)])


@triton.jit
def copy(x_ptr, y_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr, AHEAD: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        x = tl.load(x_ptr + at + AHEAD, mask=at < n)
    else:
        x = tl.load(x_ptr + at + AHEAD)  # line of the finding
    tl.store(y_ptr + at, x, mask=at < n)


@triton.jit
def to_one(x_ptr, y_ptr, HOW: tl.constexpr):
    program = tl.program_id(0)
    x = tl.load(x_ptr + program)
    if HOW == "store":
        tl.store(y_ptr, x)
    elif HOW == "same":
        tl.store(y_ptr, 1.0)
    elif HOW == "atomic":
        tl.atomic_add(y_ptr, x)
    elif HOW == "mixed":
        if program == 0:
            tl.store(y_ptr, 0.0)
        tl.atomic_add(y_ptr, x)
    elif HOW == "add":
        tl.store(y_ptr, tl.load(y_ptr) + x)
    else:
        tl.store(y_ptr + tl.arange(0, 4) // 2, tl.arange(0, 4).to(tl.float32))


@triton.jit
def last_sums(x_ptr, y_ptr, done_ptr, sum_ptr, SEM: tl.constexpr):
    program = tl.program_id(0)
    tl.store(y_ptr + program, tl.load(x_ptr + program) * 2)
    if tl.atomic_add(done_ptr, 1, sem=SEM) == 3:
        tl.store(sum_ptr, tl.sum(tl.load(y_ptr + tl.arange(0, 4)), axis=0))


@triton.jit
def arithmetic(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x, y = tl.load(x_ptr + at), tl.load(y_ptr + at)
    z = tl.where(x > y, x * y - x, -y) + 0.5
    tl.store(out_ptr + at, tl.maximum(z, x) + tl.sum(x, axis=0))


@triton.jit
def product(a_ptr, b_ptr, c_ptr, N: tl.constexpr, K: tl.constexpr, PRECISION: tl.constexpr,
            KIND: tl.constexpr):
    row, depth = tl.arange(0, N)[:, None], tl.arange(0, K)
    a = tl.load(a_ptr + row * K + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] * N + tl.arange(0, N)[None, :])
    c = tl.dot(a, b, input_precision=PRECISION, out_dtype=KIND)
    tl.store(c_ptr + row * N + tl.arange(0, N)[None, :], c)


@triton.autotune(configs=[triton.Config({"BLOCK": block}) for block in (8, 16)], key=["n"])
@triton.jit
def tuned(y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, BLOCK + tl.zeros((BLOCK,), tl.float32), mask=at < n)


def line_of(text):
    lines = pathlib.Path(__file__).read_text().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if text in line)


class Interpreted(unittest.TestCase):
    def finding(self, kernel, grid, *arguments, **options):
        with self.assertRaises(interpreted.Finding) as raised:
            kernel[grid](*arguments, **options)
        return raised.exception

    def test_a_lane_outside_of_every_tensor_is_found_before_it_is_read(self):
        x, y = torch.ones(100), torch.zeros(100)
        copy[(4,)](x, y, 100, BLOCK=32, MASKED=True, AHEAD=0)
        self.assertEqual(float(y.sum()), 100)
        found = self.finding(copy, (4,), x, y, 100, BLOCK=32, MASKED=False, AHEAD=0)
        self.assertEqual(str(found), "program (3, 0, 0) loads element 100 of x_ptr, which has 100 elements "
                                     "(28 lanes leave it)")
        self.assertEqual(found.place, (os.path.abspath(__file__), line_of("# line of the " + "finding")))
        found = self.finding(copy, (1,), x, y, 1, BLOCK=1, MASKED=True, AHEAD=-3)
        self.assertIn("loads element -3 of x_ptr", str(found))
        found = self.finding(copy, (1,), x, y, 1, BLOCK=1, MASKED=True, AHEAD=1 << 40)
        self.assertIn("in no tensor that the kernel was given", str(found))

    def test_the_judges_tensors_end_where_they_end_though_they_share_memory(self):
        memory = torch.ones(128)
        WATCH.judged = [(memory.data_ptr(), memory.data_ptr() + 64 * 4)]
        try:
            found = self.finding(copy, (1,), memory[:60], torch.zeros(100), 65, BLOCK=128, MASKED=True, AHEAD=0)
            self.assertIn("element 64 of x_ptr, which has 64 elements", str(found))
        finally:
            WATCH.judged = []

    def test_races_between_programs(self):
        x = torch.arange(4, dtype=torch.float32)
        for how, words in {"store": "program (1, 0, 0) stores element 0 of y_ptr, which program (0, 0, 0) "
                                    "stored another value",
                           "add": "program (1, 0, 0) loads element 0 of y_ptr, which program (0, 0, 0) stored",
                           "mixed": "program (1, 0, 0) stores element 0 of y_ptr",
                           "lanes": "one tl.store stores several values to element 0 of y_ptr"}.items():
            self.assertIn(words, str(self.finding(to_one, (4,), x, torch.zeros(2), HOW=how)), how)

    def test_no_race_is_what_is_none(self):
        x, y = torch.arange(4, dtype=torch.float32), torch.zeros(2)
        to_one[(4,)](x, y, HOW="same")
        to_one[(4,)](x, y, HOW="atomic")
        self.assertEqual(float(y[0]), 7)
        # In place, and a second launch over what the first one wrote.
        for _ in range(2):
            copy[(4,)](x, x, 4, BLOCK=1, MASKED=True, AHEAD=0)

    def test_an_atomic_operation_orders_programs_unless_it_is_relaxed(self):
        def run(order):
            total = torch.zeros(1)
            last_sums[(4,)](torch.ones(4), torch.zeros(4), torch.zeros(1, dtype=torch.int32), total, SEM=order)
            return float(total)

        self.assertEqual(run("acq_rel"), 8)
        with self.assertRaisesRegex(interpreted.Finding, "loads element 0 of y_ptr"):
            run("relaxed")

    def test_bfloat16_rounds_as_pytorch_rounds_it(self):
        torch.manual_seed(1)
        x, y = (torch.randn(64).bfloat16() for _ in range(2))
        out = torch.zeros(64, dtype=torch.bfloat16)
        arithmetic[(1,)](x, y, out, N=64)
        z = torch.where(x > y, x * y - x, -y) + 0.5
        total = x.float().sum().bfloat16().float()
        self.assertTrue(torch.equal(out, (torch.max(z, x).float() + total).bfloat16()))

    def product_of(self, dtype, kind, precision="ieee", out=torch.float32):
        torch.manual_seed(2)
        a, b = torch.randn(16, 1024).to(dtype), torch.randn(1024, 16).to(dtype)
        c = torch.zeros(16, 16, dtype=out)
        product[(1,)](a, b, c, N=16, K=1024, PRECISION=precision, KIND=kind)
        return float((c.double() - a.double() @ b.double()).abs().max())

    def test_products_are_as_exact_as_on_a_gpu(self):
        self.assertLess(self.product_of(torch.float32, tl.float32), 1e-4)
        self.assertLess(self.product_of(torch.bfloat16, tl.float32), 1e-4)
        tf32 = self.product_of(torch.float32, tl.float32, "tf32")
        self.assertTrue(5e-3 < tf32 < 0.2, tf32)
        half = self.product_of(torch.float16, tl.float16, out=torch.float16)
        self.assertTrue(5e-2 < half < 2, half)

    def test_a_product_that_no_tensor_core_takes_is_refused(self):
        with self.assertRaises(Exception) as raised:
            product[(1,)](torch.ones(16, 4), torch.ones(4, 16), torch.zeros(16, 16), N=16, K=4,
                          PRECISION="ieee", KIND=tl.float32)
        self.assertIn("Input shapes should have M >=", str(raised.exception))

    def test_tuning_takes_one_configuration_after_the_other(self):
        taken = []
        for n in (16, 17, 18):
            y = torch.zeros(n)
            tuned[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](y, n)
            taken.append(float(y[0]))
        self.assertEqual(taken, [8, 16, 8])

    def test_memory_without_a_value_is_poison(self):
        self.assertTrue(torch.isnan(torch.empty(3, 5)).all())
        self.assertTrue(torch.isnan(torch.empty_like(torch.ones(7).bfloat16())).all())
        self.assertEqual(int(torch.empty(2, dtype=torch.int32)[1]), -1)

    def test_a_source_finds_the_gpu_that_it_asks_for(self):
        self.assertEqual(triton.runtime.driver.active.get_active_torch_device(), torch.device("cpu"))
        self.assertEqual(torch.cuda.get_device_properties("cuda").multi_processor_count,
                         interpreted.MULTIPROCESSORS)


if __name__ == "__main__":
    unittest.main()
