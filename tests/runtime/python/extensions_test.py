"""extensions_test.py CAPSTONE: PyTorch extensions with CUDA code, built and called by
harness/emulator/torch/capstone_torch.py.

Skipped (exit code 77) where this python3 lacks PyTorch.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[3]
MODULE = ROOT / "harness/emulator/torch/capstone_torch.py"
CAPSTONE = sys.argv.pop(1) if len(sys.argv) > 1 else "capstone"
os.environ["CAPSTONE_TORCH_BUILD"] = f"'{CAPSTONE}' run"
sys.path.insert(0, str(MODULE.parent))
try:
    import torch
except ImportError as missing:
    print(f"skipped: {missing} for {sys.executable}")
    sys.exit(77)
import capstone_torch  # noqa: E402

capstone_torch.install()
from torch.utils.cpp_extension import load, load_inline  # noqa: E402

SOURCE = """
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

template <typename scalar_t>
__global__ void scale(torch::PackedTensorAccessor32<scalar_t, 2, torch::RestrictPtrTraits> x, float factor) {
  const int row = blockIdx.x, column = threadIdx.x;
  x[row][column] = static_cast<scalar_t>(static_cast<float>(x[row][column]) * factor);
}

torch::Tensor scale_(torch::Tensor x, double factor) {
  TORCH_CHECK(x.is_cuda(), "x must be a CUDA tensor");
  TORCH_CHECK(x.dim() == 2, "x has ", x.dim(), " dimensions");
  const at::cuda::OptionalCUDAGuard guard(at::device_of(x));
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, x.scalar_type(), "scale", [&] {
    scale<scalar_t><<<x.size(0), x.size(1), 0, at::cuda::getCurrentCUDAStream()>>>(
        x.packed_accessor32<scalar_t, 2, torch::RestrictPtrTraits>(), factor);
  });
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return x;
}

std::tuple<torch::Tensor, int64_t> parts(const std::vector<torch::Tensor>& all,
                                         c10::optional<torch::Tensor> more, at::IntArrayRef sizes, std::string name, bool flag) {
  auto whole = torch::cat(all, 0).reshape(sizes);
  if (more.has_value()) whole = whole + *more;
  return {whole.transpose(0, 1), static_cast<int64_t>(name.size()) + flag};
}

torch::Tensor beyond(torch::Tensor x) {
  scale<float><<<2, 64>>>(x.packed_accessor32<float, 2, torch::RestrictPtrTraits>(), 2.0f);
  return x;
}
"""
DECLARATIONS = """
torch::Tensor scale_(torch::Tensor x, double factor);
torch::Tensor beyond(torch::Tensor x);
std::tuple<torch::Tensor, int64_t> parts(const std::vector<torch::Tensor>& all,
                                         c10::optional<torch::Tensor> more, at::IntArrayRef sizes, std::string name, bool flag);
"""


class Extensions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.built = load_inline("built", DECLARATIONS, SOURCE, functions=["scale_", "parts", "beyond"])

    def test_it_writes_into_views_of_every_floating_type(self):
        for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            whole = torch.arange(24).reshape(4, 6).to(kind).cuda()
            view = whole.t()[1:4]
            expected = whole.clone()
            expected.t()[1:4] *= 3
            self.assertIs(self.built.scale_(view, 3.0), view)
            self.assertTrue(torch.equal(whole, expected), kind)

    def test_tensors_of_one_storage_are_separate_unless_they_meet(self):
        whole = torch.arange(512, dtype=torch.float32)
        a, b = whole[:200].view(10, 20), whole[300:500].view(10, 20)
        self.built.parts([a, b, a], None, [30, 20], "", True)
        self.built.scale_(whole[301:331].view(5, 6), 2.0)
        self.assertTrue(torch.equal(whole[301:331], 2 * torch.arange(301.0, 331)))
        self.assertEqual((float(whole[300]), float(whole[331])), (300, 331))
        result, _ = self.built.parts([whole[0:4].view(1, 4), whole[2:6].view(1, 4)], whole[400:404], [2, 4], "", 1 > 2)
        self.assertTrue(torch.equal(result.t(), torch.tensor([[400.0, 402, 404, 406], [402, 404, 406, 408]])))

    def test_memory_behind_a_tensor_is_not_its_own(self):
        whole = torch.ones(4096)
        module = load_inline("behind", DECLARATIONS, SOURCE, functions=["beyond"])
        with self.assertRaisesRegex(capstone_torch.KernelFailure, "kernel scale"):
            module.beyond(whole[:4].view(1, 4))  # writes 2 × 64 elements

    def test_lists_optional_tensors_and_tuples_travel(self):
        parts = [torch.ones(1, 4), torch.zeros(2, 4)]
        result, number = self.built.parts(parts, None, [6, 2], "name", True)
        self.assertEqual(number, 5)
        self.assertEqual((list(result.shape), result.stride()), ([2, 6], (1, 2)))
        self.assertTrue(torch.equal(result, torch.cat(parts).reshape(6, 2).t()))
        result, _ = self.built.parts(parts, torch.ones(2), (6, 2), "", False)
        self.assertEqual(float(result.sum()), 16)

    def test_wrong_calls_are_exceptions_and_the_extension_goes_on(self):
        for call, kind, message in (
                (lambda: self.built.scale_(torch.ones(3), 1.0), RuntimeError, "x has 1 dimensions"),
                (lambda: self.built.scale_(torch.ones(1, 1, dtype=torch.int32), 1.0), RuntimeError,
                 "\"scale\" not implemented for 'Int'"),
                (lambda: self.built.scale_(1.0, 1.0), TypeError, "a float where a Tensor is expected"),
                (lambda: self.built.scale_(torch.ones(1, 1)), TypeError, "argument 2 is missing"),
                (lambda: self.built.scale_(torch.ones(1, 1, dtype=torch.complex64), 1.0), TypeError,
                 "no torch.complex64"),
                (lambda: self.built.other(), AttributeError, "it has beyond, parts, scale_")):
            with self.assertRaises(kind) as caught:
                call()
            self.assertIn(message, str(caught.exception))
        self.assertEqual(float(self.built.scale_(torch.ones(1, 1), 2.0)), 2)

    def test_tensors_say_that_they_are_on_a_gpu(self):
        x = torch.zeros(2, device="cuda:0").to("cuda").cuda()
        self.assertTrue(x.is_cuda)
        self.assertTrue(torch.nn.Linear(2, 2).cuda().weight.is_cuda)

    def test_files_are_loaded_with_the_names_and_values_of_their_arguments(self):
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder) / "kernel.cu"
            source.write_text(SOURCE + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n'
                              '  m.def("scale_", &scale_, "", py::arg("x"), py::arg("factor") = 4.0);\n}\n')
            module = load("files", [str(source)])
        self.assertEqual(float(module.scale_(x=torch.ones(1, 1))), 4)
        self.assertEqual(float(module.scale_(torch.ones(1, 1), factor=5)), 5)
        with self.assertRaisesRegex(TypeError, "an argument of the type set"):
            module.scale_(torch.ones(1, 1), set())
        with self.assertRaisesRegex(TypeError, "no parameter has the name y"):
            module.scale_(torch.ones(1, 1), y=1)

    def test_a_failed_kernel_says_where_and_ends_the_extension(self):
        module = load_inline("failing", DECLARATIONS, SOURCE, functions=["beyond"])
        with self.assertRaisesRegex(capstone_torch.KernelFailure, "kernel scale"):
            module.beyond(torch.ones(1, 4))
        with self.assertRaisesRegex(capstone_torch.KernelFailure, "an earlier kernel of this extension"):
            module.beyond(torch.ones(2, 64))

    def test_a_mistake_is_at_the_line_of_the_string(self):
        with self.assertRaisesRegex(capstone_torch.BuildFailure, r"wrong.cu:3:\d+: error: .*nothing"):
            load_inline("wrong", "int f();", "\nint f() {\n  return nothing;\n}\n", functions=["f"])

    def test_what_the_stand_in_lacks_is_named(self):
        with self.assertRaisesRegex(capstone_torch.BuildFailure, "lacks.cu:2: .* has no conv2d()") as caught:
            load_inline("lacks", "at::Tensor f(at::Tensor x);",
                        "\nat::Tensor f(at::Tensor x) { return torch::conv2d(x, x); }\n", functions=["f"])
        self.assertTrue(caught.exception.not_judgeable)
        with self.assertRaisesRegex(capstone_torch.BuildFailure,
                                    "header 'ATen/native/Pool.h' is not in the stand-in"):
            load_inline("header", "int f();", "\n#include <ATen/native/Pool.h>\nint f() { return 1; }\n",
                        functions=["f"])

    def run_program(self, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "program.py"
            path.write_text(text)
            return subprocess.run([CAPSTONE, "run", str(path), "--python", sys.executable, *options],
                                  capture_output=True, text=True, check=False)

    def test_capstone_run_compares_a_model_with_its_reference(self):
        text = ("import torch\nfrom torch.utils.cpp_extension import load_inline\n"
                f"built = load_inline('built', '''{DECLARATIONS}''', '''{SOURCE}''', functions=['scale_'])\n"
                "class Model(torch.nn.Module):\n    def forward(self, x): return 2 * x\n"
                "class ModelNew(torch.nn.Module):\n    def forward(self, x): return built.scale_(x, 2.0)\n"
                "def get_inputs(): return [torch.ones(3, 5).cuda()]\n")
        right = self.run_program(text)
        self.assertEqual((right.returncode, right.stdout),
                         (0, "ModelNew: agrees with Model, largest difference 0\n"), right.stderr)
        wrong = self.run_program(text.replace("x, 2.0", "x, 3.0"))
        self.assertEqual((wrong.returncode, wrong.stdout),
                         (1, "ModelNew: differs from Model, largest difference 1\n"), wrong.stderr)

    def test_capstone_run_refuses_options_of_a_cu(self):
        refused = self.run_program("import torch\n", "-D", "N=1")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("a .py takes no options for its sources", refused.stderr)

    def test_capstone_run_finds_a_race(self):
        source = ("\n__global__ void sum(const float* x, float* y) {\n  __shared__ float s[64];\n"
                  "  s[threadIdx.x] = x[threadIdx.x];\n  *y = s[63 - threadIdx.x];\n}\n"
                  "torch::Tensor f(torch::Tensor x) {\n  auto y = torch::zeros({1}, x.options());\n"
                  "  sum<<<1, 64>>>(x.data_ptr<float>(), y.data_ptr<float>());\n  return y;\n}\n")
        text = ("import torch\nfrom torch.utils.cpp_extension import load_inline\n"
                f"built = load_inline('built', 'torch::Tensor f(torch::Tensor x);', '''{source}''',\n"
                "                    functions=['f'])\n"
                "built.f(torch.ones(64).cuda())\n")
        raced = self.run_program(text, "--check", "all")
        self.assertEqual(raced.returncode, 1, raced.stderr)
        self.assertRegex(raced.stderr, "capstone: built.cu:5: undefined behaviour: race on shared memory")


if __name__ == "__main__":
    unittest.main()
