"""examine.py FILE OUT.json --memory BYTES [--host-memory BYTES] [--parallel N] [--seconds S]

Runs a file in KernelBench's form on the CPU and writes down what a problem definition needs: which constants are sizes, the shapes of all
tensors as formulas over them, how values are drawn, smaller sizes to check at, sizes that fit BYTES of a GPU's memory. The file is
untrusted: this script runs in a sandbox, and what it writes is a proposal that the caller checks. Exit code 3: OUT.json holds {"refused": why}.
"""

import argparse
import ast
import itertools
import json
import math
import os
import random
import re
import resource
import sys
import time
import traceback

sys.dont_write_bytecode = True

import torch  # noqa: E402

from constants import Constants, module_at  # noqa: E402

# Constants that say how something is computed, whatever their value, or as long as it is small.
NO_SIZE = re.compile(r"kernel|stride|pad|dilat|groups", re.I)
HARDLY_A_SIZE = re.compile(r"head|layer|block|step|scal|factor|eps|slope|expan|reduction|stage|ratio|rate|depth|cluster|expert", re.I)
LEAST_SIZE = 8        # smaller constants are taken for parameters of the computation, batches excepted
LEAST_DOUBTFUL = 65
CAPS = (16, 32, 64, 128)
DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32", torch.int64: "i64", torch.uint8: "u8", torch.bool: "u8"}
CHECK_FLOPS, CHECK_BYTES = 5e7, 64e6  # what the judge draws hidden sizes below
CONTEXTS = 4 * 0.5e9 + 2 * 128e6      # processes on the GPU, and what flushes the largest L2


class Refused(Exception):
    """The file cannot become a problem; the message says why in one line."""


def one_line(problem):
    return f"{type(problem).__name__}: {(str(problem).strip() or 'no message').splitlines()[0][:300]}"


# ---- one run


class Draws:
    """Remembers how torch.rand, randn and randint drew their tensors."""

    KINDS = {
        "rand": lambda a, k: {"uniform": [0.0, 1.0]},
        "randn": lambda a, k: {"normal": [0.0, 1.0]},
        "randint": lambda a, k: {"integer": [a[0], a[1] - 1] if len(a) > 1 and isinstance(a[1], int) else [0, a[0] - 1]},
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
            self._kept.append(tensor)  # so that no other object gets its number
            if "integer" in how:
                self.integers.append(how["integer"])
            return tensor

        return draw

    def __exit__(self, *_):
        for name, make in self._original.items():
            setattr(torch, name, make)


class Count:
    """FLOPs of products and convolutions, and the largest tensor that an operator makes."""

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
            places = torch.Size(shapes[0]).numel() // shapes[0][1] if transposed else result.numel() // result.shape[1]
            self.products.append(2 * places * torch.Size(shapes[1]).numel())


def counted(call):
    """The result of `call` and its count; without a count where this PyTorch has no way to look."""
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
    """The file at some sizes: its inputs, its model's state and outputs."""

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
        self.changed = [i for i, (a, b) in enumerate(zip(before, self.inputs)) if isinstance(a, torch.Tensor) and not torch.equal(a, b)]
        self.before = before
        self.outputs = list(result) if isinstance(result, (tuple, list)) else [result]
        self.seconds = time.perf_counter() - begun

    def shapes(self):
        """Every tensor of the signature by name → its shape."""
        named = {f"in{i}": tuple(x.shape) for i, x in enumerate(self.inputs) if isinstance(x, torch.Tensor)}
        named.update({"p." + name: tuple(p.shape) for name, p in self.state().items()})
        named.update({f"out{i}": tuple(y.shape) for i, y in enumerate(self.outputs) if isinstance(y, torch.Tensor)})
        return named

    def state(self):
        """What forward() reads besides its inputs and is not fixed by the sizes: parameters, and running statistics."""
        state = dict(self.model.named_parameters())
        for name, buffer in self.model.named_buffers():
            if re.search(r"(^|\.)running_(mean|var)$", name):
                state[name] = buffer
        return state

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
            raise Refused(f"it is no Python: line {problem.lineno}: {problem.msg}") from None
        self.constants = Constants(self.tree)

    def overrides(self, sizes):
        return self.constants.overrides(sizes)


# ---- formulas


def affine(symbols, samples):
    """q + Σ m·s through all samples [(sizes, extent)], or None. Samples vary one symbol at a time, then several."""
    base, extent = samples[0]
    slopes = {}
    for symbol in symbols:
        points = {sizes[symbol]: value for sizes, value in samples if all(sizes[s] == base[s] for s in symbols if s != symbol)}
        points.pop(base[symbol], None)
        if not points:
            return None
        at, value = next(iter(points.items()))
        if (value - extent) % (at - base[symbol]):
            return None
        slopes[symbol] = (value - extent) // (at - base[symbol])
    constant = extent - sum(slopes[s] * base[s] for s in symbols)
    if any(constant + sum(slopes[s] * sizes[s] for s in symbols) != value for sizes, value in samples):
        return None
    text = " + ".join(s if m == 1 else f"{m} * {s}" for s, m in slopes.items() if m)
    return text if not constant else f"{text} {'+' if constant > 0 else '-'} {abs(constant)}"


def product(symbols, samples):
    base, extent = samples[0]
    whole = math.prod(base[s] for s in symbols)
    if extent % whole:
        return None
    factor = extent // whole
    if any(factor * math.prod(sizes[s] for s in symbols) != value for sizes, value in samples):
        return None
    return " * ".join(([str(factor)] if factor > 1 else []) + list(symbols))


def floored(symbols, samples):
    """floor((s + q) / r): what pooling and strides make of an extent."""
    if len(symbols) != 1:
        return None
    s = symbols[0]
    for r in range(2, 65):
        base, extent = samples[0]
        for q in range(extent * r - base[s], extent * r - base[s] + r):
            if all((sizes[s] + q) // r == value for sizes, value in samples):
                return f"floor(({s}{f' + {q}' if q > 0 else f' - {-q}' if q < 0 else ''}) / {r})"
    return None


def formula(symbols, samples):
    """How an extent follows from the sizes, or None."""
    if not symbols:
        return str(samples[0][1])
    for form in (affine, product, floored):
        text = form(symbols, samples)
        if text is not None:
            return text
    return None


# ---- sizes


def shrunk(value, cap):
    while value > cap and value % 2 == 0:
        value //= 2
    return cap if value > 2 * cap else value


class Sizes:
    """Which constants are sizes, and every tensor's shape as formulas over them."""

    def __init__(self, file, deadline):
        self.file, self.deadline = file, deadline
        self.original = dict(file.constants.values)
        self.ties = {}  # constant → the one that it always equals
        self.cache = {}
        self.errors = []
        self.symbols = []

    def run(self, sizes):
        """The run at these sizes, or None where the file does not work there."""
        sizes = self.complete(sizes)
        key = tuple(sorted(sizes.items()))
        if key not in self.cache:
            if time.monotonic() > self.deadline:
                return None
            try:
                run = Run(self.file, sizes)
                self.cache[key] = run.shapes(), run.integer_ranges(), run.seconds
            except Refused:
                raise
            except Exception as problem:
                self.errors.append(problem)
                self.cache[key] = None
        return self.cache[key]

    def complete(self, sizes):
        """A value for every constant of the file."""
        sizes = dict(self.original, **sizes)
        for follower, leader in self.ties.items():
            sizes[follower] = sizes[leader]
        return sizes

    def candidates(self):
        def could_be(name, value):
            if "batch" in name.lower():
                return value > 1
            return value >= (LEAST_DOUBTFUL if HARDLY_A_SIZE.search(name) else LEAST_SIZE) and not NO_SIZE.search(name)

        return [name for name, value in self.original.items() if could_be(name, value)]

    def find_base(self):
        """Small values at which the file works."""
        names = self.candidates()
        for cap in CAPS:
            for batch in (4, cap):  # the second keeps equal what must be equal
                base = {n: shrunk(self.original[n], batch if "batch" in n.lower() else cap) for n in names}
                if self.run(base):
                    return base
        # Something is fixed to its value: batches alone, then one constant after the other.
        base = {n: shrunk(self.original[n], 2) for n in names if "batch" in n.lower()}
        if not self.run(base):
            base = {}
            if not self.run(base):
                raise Refused(one_line(self.errors[-1]) if self.errors else "it takes too long on the CPU at any size")
        for name in sorted(names, key=lambda n: -self.original[n]):
            for cap in CAPS:
                smaller = dict(base, **{name: shrunk(self.original[name], cap)})
                if name not in base and self.original[name] > cap and self.run(smaller):
                    base = smaller
                    break
        return base

    def settle(self):
        """Finds self.base, self.symbols, self.shapes (name → [formula]), self.values (symbol → values that work)."""
        base = self.find_base()
        fixed = set()
        while True:
            self.base = {n: v for n, v in base.items() if n not in fixed}
            here = self.run(self.base)
            if not here:
                raise Refused("its constants depend on each other in a way that is not understood: " + one_line(self.errors[-1]) if self.errors else "it takes too long on the CPU")
            self.points, self.values, self.symbols = {}, {}, []
            drop = None
            for name in sorted(self.base, key=lambda n: self.file.constants.order[n]):
                if name not in self.ties:
                    drop = self.probe(name, here) or drop
            if not drop:
                drop = self.fit(here)
            if not drop:
                return
            fixed |= {drop} | {follower for follower, leader in self.ties.items() if leader == drop}

    def probe(self, name, here):
        """Whether other values of one constant work, and what they change. The name again: it must keep its value."""
        drop = self.vary(name, here)
        if not drop or self.points_tried:
            return drop
        # Nothing else works: another constant of the same value may have to change with it.
        for other in self.base:
            if other != name and other not in self.ties and self.original[other] == self.original[name] and self.base[other] == self.base[name] and other not in self.symbols:
                self.ties[other] = name
                if not self.vary(name, here):
                    return None
                del self.ties[other]
        return drop

    def vary(self, name, here):
        b = self.base[name]
        self.points_tried = False
        patience = 9 if here[2] < 0.3 else 4
        points = []
        for value in (b + 1, 2 * b, 3 * b, b - 1, b + 2, b + 3, 4 * b, b // 2, b + 8)[:patience]:
            if value < 1 or value == b:
                continue
            there = self.run(dict(self.base, **{name: value}))
            if not there:
                continue
            self.points_tried = True
            if there[1] != here[1] or {n: len(s) for n, s in there[0].items()} != {n: len(s) for n, s in here[0].items()}:
                return name  # ranges of integers are numbers in a definition; another number of tensors is another problem
            points.append((value, there[0]))
        if not points or all(shapes == here[0] for _, shapes in points):
            return name
        self.points[name] = points
        self.values[name] = [b] + [value for value, _ in points if value < 4 * b]
        self.symbols.append(name)
        return None

    def fit(self, here):
        """Formulas for all shapes; the name of a constant whose effect has none."""
        joint = []
        chance = random.Random(1)
        for _ in range(12 if here[2] < 0.3 else 3):
            sizes = dict(self.base, **{s: chance.choice(self.values[s]) for s in self.symbols})
            there = self.run(sizes)
            if there and {n: len(s) for n, s in there[0].items()} == {n: len(s) for n, s in here[0].items()}:
                joint.append((sizes, there[0]))
        self.shapes = {}
        for name, shape in here[0].items():
            extents = []
            for axis in range(len(shape)):
                samples = [(self.base, shape[axis])]
                used = []
                for s in self.symbols:
                    if any(shapes[name][axis] != shape[axis] for _, shapes in self.points[s]):
                        used.append(s)
                    samples += [(dict(self.base, **{s: value}), shapes[name][axis]) for value, shapes in self.points[s]]
                samples += [(sizes, shapes[name][axis]) for sizes, shapes in joint]
                text = formula(used, samples)
                if text is None:
                    return used[-1]
                extents.append(text)
            self.shapes[name] = extents
        return None

    def works(self, sizes):
        there = self.run(dict(self.base, **sizes))
        return bool(there)


def evaluate(text, sizes):
    return eval(text, {"__builtins__": {}, "floor": math.floor}, sizes)


def extent_of(shape, sizes):
    return math.prod(int(evaluate(text, sizes)) for text in shape)


# ---- values


def rounded(value):
    return float(f"{value:.3g}")


def drawn_as(tensor, draws):
    """problem.yaml's `init` for an input, and a note where it is not what the file does exactly."""
    how = draws.known.get(id(tensor))
    if tensor.dtype == torch.bool:
        return {"integer": [0, 1]}, None
    if how and (tensor.is_floating_point() or "integer" in how):
        return how, None
    if not tensor.is_floating_point():
        low, high = int(tensor.min()), int(tensor.max())
        for known in draws.integers:
            if known[0] <= low and high <= known[1]:
                return {"integer": known}, None
        return {"integer": [low, high]}, f"its integers seem to lie between {low} and {high}"
    x = tensor.detach().double()
    distinct = torch.unique(x)
    if tensor.numel() >= 4 and len(distinct) <= 8:
        return {"choice": [float(v) for v in distinct]}, None
    if x.dim() == 2 and x.shape[0] == x.shape[1] and x.shape[0] > 2:
        if torch.equal(x, torch.triu(x)):
            return {"generator": "upper_triangular"}, None
        if torch.equal(x, torch.tril(x)):
            return {"generator": "lower_triangular"}, None
        if torch.equal(x, x.t()):
            return {"generator": "symmetric"}, None
    if x.dim() >= 1 and x.shape[-1] > 1 and bool((x >= 0).all()) and bool(((x.sum(-1) - 1).abs() < 1e-4).all()):
        return {"generator": "rows_sum_to_one"}, None
    return spread(x), "how its values are made was not understood: they are drawn with the same spread"


def spread(x):
    x = x.detach().double().flatten()
    low, high, std, mean = float(x.min()), float(x.max()), float(x.std(unbiased=False)), float(x.mean())
    if low == high:
        if low == 0:
            return {"uniform": [-0.25, 0.25]}
        return {"uniform": sorted([rounded(0.5 * low), rounded(1.5 * low)])}
    centred = (x - mean) / std
    if x.numel() >= 32 and float((centred**4).mean()) > 2.4:
        return {"normal": [rounded(mean), rounded(std)]}
    bound = max(abs(low), abs(high))
    if low < 0 < high and abs(mean) < 0.5 * bound:
        return {"uniform": [-rounded(bound), rounded(bound)]}
    return {"uniform": [rounded(low), rounded(high)] if rounded(low) < rounded(high) else [rounded(low), rounded(low) + rounded(std) + 1e-6]}


def initial(name, tensor):
    """Parameters begin as the file makes them; where all are the same they are spread around that, so that ignoring them shows."""
    return spread(tensor)


# ---- the whole


RESERVED = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const", "constexpr", "continue", "default", "delete", "do",
    "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace",
    "new", "not", "nullptr", "operator", "or", "private", "protected", "public", "register", "requires", "return", "short", "signed", "sizeof", "static",
    "struct", "switch", "template", "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "wchar_t", "while", "xor", "size_t", "int32_t", "int64_t", "uint8_t", "launch", "prepare", "prepared", "prepared_bytes", "stream",
    "workspace", "workspace_bytes", "slots", "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "cudaStream_t", "main", "min", "max", "abs", "sqrt",
    "log2", "floor", "ceil", "ceil_div", "round_up",
}


class Names:
    def __init__(self, taken):
        self._taken = set(taken) | RESERVED

    def fresh(self, wanted):
        wanted = re.sub(r"\W", "_", wanted)[-36:].lstrip("_0123456789") or "t"
        name, n = wanted, 1
        while name in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        self._taken.add(name)
        return name


def argument_names(model, count):
    import inspect

    try:
        names = [p.name for p in inspect.signature(model.forward).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    except (TypeError, ValueError):
        names = []
    return [names[i] if i < len(names) else f"x{i}" for i in range(count)]


def signature_of(run, sizes, parameters):
    """The parameters of launch() in order: inputs as forward() takes them, the model's state, outputs."""
    names = Names(sizes.symbols)
    signature, notes = [], []
    for i, (value, wanted) in enumerate(zip(run.inputs, argument_names(run.model, len(run.inputs)))):
        name = names.fresh(wanted)
        if isinstance(value, torch.Tensor):
            dtype = type_of(value, f"the input {wanted}")
            init, note = drawn_as(value, run.draws)
            if note:
                notes.append(f"{name}: {note}")
            entry = {"name": name, "role": "input", "dtype": dtype, "shape": sizes.shapes[f"in{i}"], "init": init}
            if value.dtype == torch.bool:
                entry["python"] = "bool"
            signature.append(entry)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            signature.append({"name": name, "role": "scalar", "dtype": "f32" if isinstance(value, float) else "i64", "value": repr(value), "python": "forward"})
        else:
            raise Refused(f"get_inputs() gives a {type(value).__name__} for {wanted}: tensors and numbers can be judged")
    for path, tensor in run.state().items():
        dtype = type_of(tensor, f"the parameter {path}")
        signature.append({"name": names.fresh(path.replace(".", "_")), "role": "parameter", "dtype": dtype, "shape": sizes.shapes["p." + path],
                          "init": initial(path, parameters.get(path, tensor)), "python": path})
    for i, value in enumerate(run.outputs):
        if not isinstance(value, torch.Tensor):
            raise Refused(f"forward() returns a {type(value).__name__} among its outputs: only tensors can be judged")
        if value.dtype == torch.bool:
            raise Refused("forward() returns truth values (torch.bool): only numbers can be judged")
        signature.append({"name": names.fresh("y" if len(run.outputs) == 1 else f"y{i}"), "role": "output", "dtype": type_of(value, "an output"), "shape": sizes.shapes[f"out{i}"]})
    return signature, notes


def type_of(tensor, what):
    if tensor.dtype not in DTYPES:
        raise Refused(f"{what} has the type {tensor.dtype}, which cannot be judged")
    return DTYPES[tensor.dtype]


def tensor_bytes(signature, sizes, role=None):
    width = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u8": 1}
    return sum(width[p["dtype"]] * extent_of(p["shape"], sizes) for p in signature if "shape" in p and (role is None or p["role"] == role))


def needed(signature, sizes, parallel, intermediates):
    """[B] of GPU memory: tensors, expected outputs, and what PyTorch allocates in each of the processes that run side by side."""
    everything, outputs = tensor_bytes(signature, sizes), tensor_bytes(signature, sizes, "output")
    return everything + outputs + parallel * (outputs + 2 * intermediates * everything) + CONTEXTS


def fitting(signature, sizes, memory, parallel, intermediates):
    """The original sizes, halved one after the other until a run fits into the memory; batches first."""
    now = {s: sizes.original[s] for s in sizes.symbols}
    order = sorted(sizes.symbols, key=lambda s: ("batch" not in s.lower(), -now[s]))
    while needed(signature, now, parallel, intermediates) > memory:
        for symbol in order:
            # A batch that is halved over and over is another problem: the longer extents have their turn, too.
            smaller = dict(now, **{symbol: now[symbol] // 2})
            if now[symbol] % 2 == 0 and smaller[symbol] >= sizes.base[symbol] and (tensor_bytes(signature, smaller) < tensor_bytes(signature, now)):
                now = smaller
                break
        else:
            return None
    return now


def flops_formula(sizes, base, elsewhere):
    """Σ c · Π s^k, a term for each kind of product: through its FLOPs at the base and at one other value of each symbol; exponents
    are whole, rounded down. `elsewhere`: symbol → (value, FLOPs). All lists are in the order of execution."""
    if any(len(counts) != len(base) for _, counts in elsewhere.values()):
        base, elsewhere = [sum(base)], {s: (value, [sum(counts)]) for s, (value, counts) in elsewhere.items()}
    terms = {}
    for i, here in enumerate(base):
        powers = {}
        for symbol, (value, counts) in elsewhere.items():
            ratio = math.log(max(counts[i], 1) / max(here, 1)) / math.log(value / sizes.base[symbol])
            powers[symbol] = max(0, math.floor(ratio + 0.15))
        key = " * ".join(s if k == 1 else f"{s}^{k}" for s, k in powers.items() if k)
        terms[key] = terms.get(key, 0) + here / math.prod(sizes.base[s] ** k for s, k in powers.items())
    return " + ".join(f"{number:.6g}" + (f" * {key}" if key else "") for key, number in terms.items())


def grouped_bytes(signature):
    width = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "i64": 8, "u8": 1}
    terms = {}
    for p in signature:
        if "shape" not in p:
            continue
        number, factors = width[p["dtype"]], []
        for extent in p["shape"]:
            if extent.isdigit():
                number *= int(extent)
            else:
                factors.append(f"({extent})" if not extent.isidentifier() else extent)
        key = " * ".join(sorted(factors))
        terms[key] = terms.get(key, 0) + number
    return " + ".join(f"{number} * {key}" if key else str(number) for key, number in terms.items())


def degenerate_notes(run):
    notes = []
    dropouts = [name for name, module in run.model.named_modules() if type(module).__name__.startswith("Dropout") and getattr(module, "p", 0) > 0]
    if dropouts:
        notes.append(f"Dropout ({', '.join(dropouts[:3])}) is off here, as in inference; KernelBench leaves it live, so that its own check compares random numbers")
    if any("running_mean" in name for name in run.state()):
        notes.append("BatchNorm uses its running statistics here, as in inference; KernelBench leaves it in training mode")
    for i, y in enumerate(run.outputs):
        if y.numel() > 1 and bool((y == y.flatten()[0]).all()):
            notes.append(f"degenerate: output {i} is the same number everywhere")
        if y.is_floating_point() and not bool(torch.isfinite(y).all()):
            notes.append(f"degenerate: output {i} holds infinities or NaN")
    if any(isinstance(x, torch.Tensor) and x.dtype in (torch.int32, torch.int64) for x in run.inputs):
        notes.append("it has integer inputs; they stay integers here (KernelBench's evaluation casts them to floating point)")
    return notes


def examine(options):
    file = File(options.file)
    deadline = time.monotonic() + options.seconds
    sizes = Sizes(file, deadline)
    sizes.settle()
    run = Run(file, sizes.complete(sizes.base))
    if run.changed:
        raise Refused(f"forward() changes its own input ({argument_names(run.model, len(run.inputs))[run.changed[0]]}), which no judged kernel may")
    again = run.model(*run.inputs)
    again = list(again) if isinstance(again, (tuple, list)) else [again]
    for a, b in zip(run.outputs, again):
        if isinstance(a, torch.Tensor) and not torch.allclose(a.double(), b.double(), rtol=1e-3, atol=1e-5, equal_nan=True):
            raise Refused("forward() gives other results for the same inputs when it is called again (random numbers, or state that it keeps): there is no right answer to compare with")
    signature, notes = signature_of(run, sizes, {})

    # Counts of work at the base and beside it.
    def count_at(where):
        fresh = Run(file, sizes.complete(where))
        _, count = counted(lambda: fresh.model(*fresh.before))
        # Whatever is computed, every input is looked at once, and every output made.
        least = max(sum(t.numel() for t in side if isinstance(t, torch.Tensor)) for side in (fresh.inputs, fresh.outputs))
        return count.products if sum(count.products) >= least else [least], count.largest

    products, largest = count_at(sizes.base)
    elsewhere = {}
    for symbol in sizes.symbols:
        value = max(v for v, _ in sizes.points[symbol])
        elsewhere[symbol] = value, count_at(dict(sizes.base, **{symbol: value}))[0]
    flops = flops_formula(sizes, products, elsewhere)
    intermediates = largest / max(1, tensor_bytes(signature, sizes.base))

    measure = fitting(signature, sizes, options.memory, options.parallel, intermediates)
    if measure is None:
        whole = needed(signature, {s: sizes.original[s] for s in sizes.symbols}, options.parallel, intermediates)
        raise Refused(f"a run takes about {whole / 1e9:.1f} GB of GPU memory, and its sizes cannot be made smaller")
    # Values of parameters as the model has them at the measured sizes, where that model is quickly made.
    if measure != sizes.base and tensor_bytes(signature, measure, "parameter") < 1.5e9:
        torch.manual_seed(0)
        module = module_at(file.tree, file.path, file.overrides(sizes.complete(measure)))
        model = module.Model(*module.get_init_inputs())
        state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        signature, _ = signature_of(run, sizes, state)

    base = {s: sizes.base[s] for s in sizes.symbols}
    check = [base]
    for pick in (lambda s: base[s] + 1, lambda s: 2 * base[s], lambda s: base[s] - 1):
        other = {s: pick(s) if pick(s) in sizes.values[s] else base[s] for s in sizes.symbols}
        if other not in check and len(check) < 3 and sizes.works(other):
            check.append(other)
    small = eval_flops(flops, base) <= CHECK_FLOPS and tensor_bytes(signature, base) <= CHECK_BYTES
    vary = {s: sorted(set(sizes.values[s])) for s in sizes.symbols}
    combinations = list(itertools.islice(itertools.product(*vary.values()), 0, 100000))
    chance = random.Random(2)
    draws = chance.sample(combinations, min(len(combinations), 10 if run.seconds < 0.3 else 3))
    if not sizes.symbols or not small or not all(sizes.works(dict(zip(vary, draw))) for draw in draws):
        vary = {}
    if not sizes.symbols:
        notes.append("none of its constants can be varied: every case has the timed size")
    elif not vary:
        notes.append("sizes are not drawn, only those listed under `check` are used: other combinations are too large for the CPU, or do not work")
    for s in sizes.symbols:
        if measure[s] != sizes.original[s]:
            notes.append(f"shrunk: {s} {sizes.original[s]} → {measure[s]}, so that a run fits {options.memory / 1e9:.0f} GB of GPU memory")
    return {
        "signature": signature,
        "symbols": sizes.symbols,
        "check": check,
        "vary": vary,
        "measure": measure,
        "original": {s: sizes.original[s] for s in sizes.symbols},
        "flops": flops,
        "bytes": grouped_bytes(signature),
        "notes": notes + degenerate_notes(run),
        "reference": file.constants.rewritten(file.text, sizes.symbols, sizes.ties),
        "documentation": (run.model.__class__.__doc__ or "").strip()[:1500],
        "needed_bytes": needed(signature, measure, options.parallel, intermediates),
    }


def eval_flops(text, sizes):
    return evaluate(text.replace("^", "**"), sizes)


def limit_memory(size):
    """What allocates more gets an exception that can be told, instead of being killed."""
    with open("/proc/self/statm") as statm:
        mapped = int(statm.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + int(size), mapped + int(size)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("out")
    parser.add_argument("--memory", type=float, required=True)
    parser.add_argument("--host-memory", type=float, default=6e9)
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=90)
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.set_num_threads(min(4, os.cpu_count() or 1))
    limit_memory(options.host_memory)
    code = 0
    try:
        found = examine(options)
    except Refused as why:
        found, code = {"refused": str(why)}, 3
    except Exception as problem:
        found, code = {"refused": one_line(problem), "traceback": traceback.format_exc()[-8000:]}, 3
    with open(options.out, "w", encoding="utf-8") as out:
        json.dump(found, out)
    return code


if __name__ == "__main__":
    sys.exit(main())
