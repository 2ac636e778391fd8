"""One run of a file in KernelBench's form at given sizes: its inputs, its outputs and its cost."""

import ast
import time

import torch

from constants import Constants, module_at
from model import state_of


class Refused(Exception):
    """The file cannot become a problem; the message gives the reason in one line."""


def one_line(problem):
    said = f"{type(problem).__name__}: {(str(problem).strip() or 'no message').splitlines()[0][:300]}"
    if isinstance(problem, AttributeError) and said.startswith("AttributeError: module 'torch"):
        said += f" (this is PyTorch {torch.__version__})"
    if "CUDA" not in said:
        return said
    return f"it needs a GPU; in KernelBench's form get_inputs() creates its tensors on the CPU ({said})"


class Draws:
    """Records how torch.rand, randn and randint drew their tensors."""

    KINDS = {
        "rand": lambda a, k: {"uniform": [0.0, 1.0]},
        "randn": lambda a, k: {"normal": [0.0, 1.0]},
        "randint": lambda a, k: {
            "integer": [a[0], a[1] - 1] if len(a) > 1 and isinstance(a[1], int) else [0, a[0] - 1]},
    }

    def __enter__(self):
        self.known, self.integers, self._kept = {}, [], []
        self._original = {name: getattr(torch, name) for name in self.KINDS}
        for name, describe in self.KINDS.items():
            setattr(torch, name, self._wrapped(self._original[name], describe))
        return self

    def _wrapped(self, make, describe):
        def draw(*arguments, **options):
            tensor = make(*arguments, **options)
            try:
                how = describe(arguments, options)
            except (IndexError, TypeError):
                return tensor
            self.known[id(tensor)] = how
            self._kept.append(tensor)  # keep it alive, so that no other object gets the same id()
            if "integer" in how:
                self.integers.append(how["integer"])
            return tensor

        return draw

    def __exit__(self, *_):
        for name, make in self._original.items():
            setattr(torch, name, make)


class Count:
    """FLOPs of products and convolutions, and the largest tensor that an operator creates."""

    def __init__(self):
        self.products, self.largest = [], 0  # FLOPs of each product or convolution; [B]

    def add(self, name, arguments, result):
        for tensor in result if isinstance(result, (tuple, list)) else [result]:
            if isinstance(tensor, torch.Tensor) and not tensor._is_view():
                self.largest = max(self.largest, tensor.numel() * tensor.element_size())
        if not isinstance(result, torch.Tensor):
            return
        shapes = [tuple(a.shape) for a in arguments if isinstance(a, torch.Tensor)]
        if name in ("mm", "bmm") and len(shapes) == 2:
            self.products.append(2 * result.numel() * shapes[0][-1])
        elif name in ("addmm", "baddbmm") and len(shapes) == 3:
            self.products.append(2 * result.numel() * shapes[1][-1])
        elif name in ("convolution", "_convolution", "mkldnn_convolution") and len(shapes) >= 2:
            transposed = len(arguments) > 6 and arguments[6] is True
            places = (torch.Size(shapes[0]).numel() // shapes[0][1] if transposed
                      else result.numel() // result.shape[1])
            self.products.append(2 * places * torch.Size(shapes[1]).numel())


def counted(call):
    """The result of `call` and its count; no count if this PyTorch version cannot observe operators."""
    count = Count()
    try:
        from torch.utils._python_dispatch import TorchDispatchMode
    except ImportError:
        return call(), count

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), options=None):
            result = function(*arguments, **(options or {}))
            count.add(function.__name__.split(".")[0], arguments, result)
            return result

    with Mode():
        return call(), count


class Run:
    """The file at given sizes: its inputs, its model's state and outputs."""

    def __init__(self, file, sizes, seed=0):
        torch.manual_seed(seed)
        self.sizes = sizes
        begun = time.perf_counter()
        self.module = module_at(file.tree, file.path, file.overrides(sizes))
        for name in ("Model", "get_inputs", "get_init_inputs"):
            if not hasattr(self.module, name):
                raise Refused(f"the file defines no {name}: it is not in KernelBench's form")
        with Draws() as self.draws:
            inputs = self.module.get_inputs()
        if not isinstance(inputs, (list, tuple)):
            raise Refused(f"get_inputs() returns a {type(inputs).__name__}, not a list")
        self.inputs = list(inputs)
        self.model = self.module.Model(*self.module.get_init_inputs()).eval()
        before = [x.clone() if isinstance(x, torch.Tensor) else x for x in self.inputs]
        result = self.model(*self.inputs)
        self.changed = [i for i, (a, b) in enumerate(zip(before, self.inputs))
                        if isinstance(a, torch.Tensor) and not torch.equal(a, b)]
        self.before = before
        self.outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        self.seconds = time.perf_counter() - begun

    def shapes(self):
        """Every tensor of the signature by name → its shape."""
        named = {f"in{i}": tuple(x.shape) for i, x in enumerate(self.inputs) if isinstance(x, torch.Tensor)}
        named.update({"p." + name: tuple(p.shape) for name, p in self.state().items()})
        named.update({f"out{i}": tuple(y.shape) for i, y in enumerate(self.outputs)
                      if isinstance(y, torch.Tensor)})
        return named

    def state(self):
        """The values that forward() reads besides its inputs and that the sizes do not determine."""
        return state_of(self.model)

    def integer_ranges(self):
        return tuple(tuple(r) for r in self.draws.integers)


class File:
    def __init__(self, path):
        self.path = path
        with open(path, encoding="utf-8") as text:
            self.text = text.read()
        try:
            self.tree = ast.parse(self.text)
        except SyntaxError as problem:
            raise Refused(f"it is not valid Python: line {problem.lineno}: {problem.msg}") from None
        self.constants = Constants(self.tree)

    def overrides(self, sizes):
        return self.constants.overrides(sizes)
