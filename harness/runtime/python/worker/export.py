"""export.py: the arguments of worker.py. Turns a candidate's Triton kernels and the Python that launches them
into device code and C++, without a GPU.

forward() is called on stand-ins: tensors without memory, and sizes that remember how they were computed. Each
launch is then a kernel, a grid and arguments, written as C++ over the problem's sizes. A comparison of sizes,
or a size that Python must know as a number (a tl.constexpr), becomes a condition. forward() is called again for
each set of sizes that no earlier call's conditions fit, so launch() chooses among them.

Untrusted, as every candidate's process: what it exports is judged like a kernel by hand.
"""

import functools
import math
import operator
import os
import re
import sys

sys.dont_write_bytecode = True

from worker import (Refusal, Worker, as_list, hide_our_files, import_torch, main, one_line,  # noqa: E402
                    uses_triton)

MOST_CALLS = 32  # of forward(); a kernel that needs more has a constant that follows a size
LARGEST_I32 = 2**31 - 1
INTEGERS = {"i1": "std::int8_t", "u1": "std::uint8_t", "i8": "std::int8_t", "u8": "std::uint8_t",
            "i16": "std::int16_t", "u16": "std::uint16_t", "i32": "std::int32_t", "u32": "std::uint32_t",
            "i64": "std::int64_t", "u64": "std::uint64_t"}


def refuse(message, hint="launch it in CUDA C++, or judge the .py as it is: its execution is in-process"):
    raise Refusal("not_exportable", message, hint)


class Size:
    """A whole number that knows how it follows from the problem's sizes: as C++, and for other sizes."""

    call = None  # the call of forward() that is followed

    def __init__(self, value, text, at):
        self.value, self.text, self.at = value, text, at

    @staticmethod
    def of(number):
        if isinstance(number, Size):
            return number
        return Size(number, str(number), lambda sizes: number)

    def known(self):
        """As a plain number: from here on, the call holds for this value only."""
        self.call.require(self, "==", Size.of(self.value))
        return self.value

    __index__ = __int__ = known

    def __float__(self):
        return float(self.known())

    def __bool__(self):
        return self.call.decide(self, "!=", Size.of(0))

    def __hash__(self):
        return hash(self.known())

    def __neg__(self):
        return 0 - self

    def __truediv__(self, other):
        return Ratio(self, Size.of(other))

    def __rtruediv__(self, other):
        return Ratio(Size.of(other), self)

    def __repr__(self):
        return self.text

    def __getattr__(self, name):
        return getattr(self.known(), name)  # bit_length() and the like


def _arithmetic(name, compute, text):
    def one(self, other):
        if isinstance(other, float):
            return compute(float(self), other)
        if not isinstance(other, (int, Size)):
            return NotImplemented
        other = Size.of(other)
        return Size(compute(self.value, other.value), text.format(self.text, other.text),
                    lambda sizes: compute(self.at(sizes), other.at(sizes)))

    setattr(Size, f"__{name}__", one)
    setattr(Size, f"__r{name}__", lambda self, other: other * 1.0 if isinstance(other, Size)
            else one(Size.of(other), self) if isinstance(other, int) else compute(other, float(self)))


for _name, _compute, _text in (("add", operator.add, "({} + {})"), ("sub", operator.sub, "({} - {})"),
                               ("mul", operator.mul, "({} * {})"),
                               ("floordiv", operator.floordiv, "floor_div({}, {})"),
                               ("mod", operator.mod, "floor_mod({}, {})")):
    _arithmetic(_name, _compute, _text)

COMPARISONS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq,
               "!=": operator.ne}
OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}


def _comparison(symbol):
    def compare(self, other):
        if isinstance(other, float):
            return COMPARISONS[symbol](float(self), other)
        if not isinstance(other, (int, Size)):
            return NotImplemented
        return self.call.decide(self, symbol, Size.of(other))

    return compare


for _name, _symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="), ("eq", "=="), ("ne", "!=")):
    setattr(Size, f"__{_name}__", _comparison(_symbol))
for _name in ("and", "or", "xor", "lshift", "rshift", "pow"):
    _plain = getattr(operator, _name + "_" if _name in ("and", "or") else _name)
    setattr(Size, f"__{_name}__", lambda self, other, plain=_plain: plain(
        self.known(), other.known() if isinstance(other, Size) else other))
    setattr(Size, f"__r{_name}__", lambda self, other, plain=_plain: plain(other, self.known()))


class Ratio:
    """A quotient of sizes: its ceiling and floor are sizes, anything else is a number."""

    def __init__(self, above, below):
        self._above, self._below = above, below

    def __ceil__(self):
        return (self._above + (self._below - 1)) // self._below

    def __floor__(self):
        return self._above // self._below

    def __float__(self):
        return float(self._above) / float(self._below)

    def __getattr__(self, name):
        return getattr(float(self), name)

    def __mul__(self, other):
        return float(self) * float(other)

    __rmul__ = __mul__


def product_of(shape):
    return functools.reduce(operator.mul, shape) if len(shape) else 1


class Place:
    """What a tensor lies in: one of launch()'s pointers, or (`own`) memory that forward() asked for."""

    def __init__(self, text, size=None):
        self.text, self.bytes, self.own = text, size, size is not None


class Tensor:
    """A dense tensor without memory."""

    requires_grad, is_cuda = False, True

    def __init__(self, torch, place, shape, dtype):
        self._torch, self.place, self.dtype = torch, place, dtype
        self.shape = tuple(shape)
        self.device, self.layout = torch.device("cpu"), torch.strided

    ndim = property(lambda self: len(self.shape))

    def dim(self):
        return len(self.shape)

    def size(self, dim=None):
        return self.shape if dim is None else self.shape[dim]

    def numel(self):
        return product_of(self.shape)

    def stride(self, dim=None):
        strides = [1]
        for extent in reversed(self.shape[1:]):
            strides.insert(0, strides[0] * extent)
        return tuple(strides[:len(self.shape)]) if dim is None else strides[dim]

    def element_size(self):
        return self._torch.empty(0, dtype=self.dtype).element_size() if self.dtype else 1

    def data_ptr(self):
        return 0  # as well aligned as the judge's tensors

    def is_contiguous(self):
        return True

    def contiguous(self):
        return self

    def detach(self):
        return self

    def view(self, *shape):
        shape = list(shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape)
        if -1 in [extent for extent in shape if isinstance(extent, int)]:
            free = shape.index(-1)
            shape[free] = self.numel() // product_of(shape[:free] + shape[free + 1:])
        return Tensor(self._torch, self.place, shape, self.dtype)

    reshape = view

    def flatten(self):
        return self.view(self.numel())

    def new_empty(self, *shape, dtype=None, **_):
        return self._torch.empty(*shape, dtype=dtype or self.dtype)

    def new_zeros(self, *shape, dtype=None, **_):
        return self._torch.zeros(*shape, dtype=dtype or self.dtype)

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        refuse(f"forward() uses .{name} of a tensor: PyTorch's own work cannot be exported")

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        refuse(f"forward() calls torch.{getattr(function, '__name__', function)}: PyTorch's own work cannot "
               "be exported")


class Number:
    """An argument of forward() that is a scalar: it can be handed to a kernel, and nothing else."""

    def __init__(self, text):
        self.text = text

    def __getattr__(self, name):
        if name.startswith("__") and name not in ("__float__", "__int__"):
            raise AttributeError(name)
        refuse(f"forward() computes with {self.text}, whose value the export does not know")


class Compiled:
    """Kernels that are compiled, each once, with the arguments that its code expects."""

    def __init__(self, folder):
        self._folder, self._known, self.names = folder, {}, []

    def kernel(self, function, run, named, options):
        """@return (index, [(name, type)] of its parameters, metadata)"""
        key = repr((id(function), sorted(options.items(), key=str),
                    [(name, getattr(value, "dtype", value)) for name, value in named.items()]))
        if key not in self._known:
            name = f"{re.sub(r'[^A-Za-z0-9_]', '_', function.__name__)}_{len(self.names)}"
            function._repr = lambda _: name
            kernel = run(function, grid=(1,), warmup=True, **named, **options)
            if kernel.metadata.name != name:
                refuse(f"this Triton calls the kernel {kernel.metadata.name} when asked to call it {name}",
                       "export it with Triton 3.6")
            with open(os.path.join(self._folder, f"{len(self.names)}.cubin"), "wb") as file:
                file.write(kernel.asm["cubin"])
            declared = re.search(r"\.entry\s+" + name + r"\s*\((.*?)\)\s*[.{]", kernel.asm["ptx"], re.DOTALL)
            count = len(re.findall(r"\.param\b", declared[1]))
            given = [(arg, kind) for arg, kind in kernel.src.signature.items() if kind != "constexpr"]
            self._known[key] = len(self.names), given, count - len(given), kernel.metadata
            self.names.append(name)
        return self._known[key]


class Call:
    """One call of forward(): its conditions on the sizes, and what it puts on the GPU."""

    def __init__(self):
        self.in_forward = False  # the constructor's tensors are real
        self.conditions = {}  # C++ → function of sizes
        self.steps = []  # ("zero", place) and ("launch", function, run, named arguments, options, grid)
        self.places = []

    def require(self, left, symbol, right):
        if left.text != right.text and not (left.text.isdigit() and right.text.isdigit()):
            self.conditions[f"{left.text} {symbol} {right.text}"] = (
                lambda sizes: COMPARISONS[symbol](left.at(sizes), right.at(sizes)))

    def decide(self, left, symbol, right):
        outcome = COMPARISONS[symbol](left.value, right.value)
        self.require(left, symbol if outcome else OPPOSITE[symbol], right)
        return outcome

    def fits(self, sizes):
        return all(holds(sizes) for holds in self.conditions.values())

    def memory(self, torch, shape, dtype, zero):
        place = Place(f"memory{len(self.places)}", Size.of(1))
        tensor = Tensor(torch, place, shape, dtype)
        place.bytes = Size.of(tensor.numel() * tensor.element_size())
        self.places.append(place)
        if zero:
            self.steps.append(("zero", place))
        return tensor


class Exporter(Worker):
    def hello(self):
        if not uses_triton(self._options.candidate):
            refuse(f"{os.path.basename(self._options.candidate)} does not import triton: only kernels in Triton "
                   "are exported", "judge it as it is: its execution is in-process")
        self._torch = torch = import_torch()
        os.environ["TRITON_DISABLE_LINE_INFO"] = "1"  # the lines of a file that is not there
        try:
            import triton
            import triton.language  # noqa: F401
            from interpreted import Driver
        except Exception as problem:
            raise Refusal("environment", f"Triton cannot be imported: {one_line(problem)}",
                          f"install triton and numpy for {sys.executable}, or give --python another python3",
                          problem) from None
        import model
        from memory import dtype_of

        self._dtype_of = dtype_of
        self._triton, self._model, self._version = None, model, triton.__version__
        hide_our_files()
        torch.set_grad_enabled(False)
        self._take_over(torch, triton, Driver)
        return {"ok": True, "protocol": 1, "backend": "torch"}

    def _take_over(self, torch, triton, driver):
        """What forward() calls in addition to kernels, with answers that are good for any size."""
        from triton.backends.compiler import GPUTarget
        from triton.runtime.autotuner import Autotuner
        from triton.runtime.jit import JITFunction

        exporter = self

        class Target(driver):
            def get_current_target(self):
                return GPUTarget("cuda", exporter._capability, 32)

        triton.runtime.driver.set_active(Target())
        self._run, self._capability = JITFunction.run, 90

        def launched(function, *arguments, grid, warmup=False, **options):
            exporter._launch(function, arguments, options, grid)

        def tuned(tuner, *arguments, **options):
            if len(tuner.configs) != 1:
                refuse(f"{tuner.base_fn.__name__} is tuned over {len(tuner.configs)} configurations, by time",
                       "leave the best configuration alone in @triton.autotune; TRITON_PRINT_AUTOTUNING=1 names it")
            return tuner.fn.run(*arguments, **options, **tuner.configs[0].all_kwargs())

        JITFunction.run, Autotuner.run = launched, tuned
        for name, zero, like in (("empty", False, False), ("zeros", True, False), ("empty_like", False, True),
                                 ("zeros_like", True, True)):
            setattr(torch, name, self._factory(getattr(torch, name), zero, like))
        power = triton.next_power_of_2

        def next_power_of_2(n):
            if not isinstance(n, Size):
                return power(n)
            result = power(n.value)
            Size.call.require(n, "<=", Size.of(result))
            Size.call.require(n, ">", Size.of(result // 2))
            return result

        triton.next_power_of_2 = next_power_of_2
        triton.cdiv = lambda x, y: (x + (y - 1)) // y
        torch.cuda.get_device_properties = lambda device=None: type(
            "Properties", (), {"multi_processor_count": Size(132, "multiprocessors", lambda sizes: 132), "name": "", "warp_size": 32,
                               "major": self._capability // 10, "minor": self._capability % 10})
        torch.cuda.get_device_capability = lambda device=None: divmod(self._capability, 10)
        torch.cuda.current_device = lambda: 0

    def _factory(self, own, zero, like):
        def make(*arguments, dtype=None, **options):
            if not (Size.call and Size.call.in_forward) or like and not isinstance(arguments[0], Tensor):
                return own(*arguments, **({"dtype": dtype} if dtype else {}), **options)
            if like:
                shape, dtype = arguments[0].shape, dtype or arguments[0].dtype
            else:
                shape = options.get("size", arguments)
                shape = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
                if not any(isinstance(extent, Size) for extent in shape) and tuple(shape) == (0,):
                    return own(0, dtype=dtype)
            return Size.call.memory(self._torch, shape, dtype or self._torch.get_default_dtype(), zero)

        return make

    def _launch(self, function, arguments, options, grid):
        names = list(function.arg_names)
        named = dict(zip(names, arguments))
        named.update({name: options.pop(name) for name in list(options) if name in names})
        for parameter in function.params:
            if parameter.name not in named:
                named[parameter.name] = parameter.default
            value = named[parameter.name]
            if parameter.is_constexpr and isinstance(value, Size):
                named[parameter.name] = value.known()
            elif type(value).__name__ == "TensorDescriptor":
                refuse(f"{function.__name__} takes a tensor descriptor that the host makes")
            elif isinstance(value, self._torch.Tensor):
                refuse(f"{function.__name__} takes a tensor that forward() did not get and did not allocate")
        options = {key: value.known() if isinstance(value, Size) else value for key, value in options.items()}
        if callable(grid):
            grid = grid(dict(named))
        grid = [Size.of(extent) for extent in (grid if isinstance(grid, (tuple, list)) else (grid,))]
        Size.call.steps.append(("launch", function, named, options, grid + [Size.of(1)] * (3 - len(grid))))

    def handle(self, request, descriptor):
        if request.get("op") == "export":
            return self.export(request)
        return super().handle(request, descriptor)

    def export(self, request):
        """`signature`: launch()'s tensors and scalars; `sizes`: sets to be covered, the measured one first;
        `folder`: where device code goes. @return the body of launch(), and how many sets it covers."""
        self._compiled, self._capability = Compiled(request["folder"]), request["capability"]
        constants = {repr(self._arguments_at(sizes)) for sizes in request["sizes"]}
        calls, covered = [], 0
        for sizes in request["sizes"]:
            if any(call.fits(sizes) for call in calls):
                covered += 1
            elif len(calls) < MOST_CALLS:
                calls.append(self._follow(sizes, request["signature"], len(constants) > 1))
                covered += 1
        blocks = [self._block(call, special) for call in calls for special in (True, False)]
        return {"ok": True, "body": "\n".join(dict.fromkeys(blocks)), "names": self._compiled.names,
                "covered": covered, "triton": self._version}

    def _arguments_at(self, sizes):
        return self._model.module_at(self._subject._tree, self._subject._path, sizes).get_init_inputs()

    def _follow(self, sizes, signature, constants_vary):
        """Calls forward() at these sizes."""
        call = Size.call = Call()
        symbols = {name: Size(value, name, lambda at, name=name: at[name]) for name, value in sizes.items()}
        subject = self._subject
        reference = self._model.module_at(subject._tree, subject._path, sizes)
        kind = subject._candidate.at(sizes, reference)
        if constants_vary or any(hasattr(subject._candidate.module, name) for name in sizes):
            for size in symbols.values():
                size.known()
        model = kind(*reference.get_init_inputs()).eval()
        call.in_forward = True
        inputs, outputs = [], []
        for entry in signature:
            if "shape" not in entry:
                if entry["python"]:
                    inputs.append(Number(entry["name"]))
                continue
            tensor = Tensor(self._torch, Place(entry["name"]),
                            [self._extent(text, symbols) for text in entry["shape"]],
                            self._dtype(entry))
            if entry["role"] == "parameter" and entry["python"]:
                self._become_parameter(model, entry["python"], tensor)
            elif entry["role"] != "output":
                inputs.append(tensor)
            if entry["role"] in ("output", "inout"):
                outputs.append(tensor)
        results = as_list(model(*inputs))
        if len(results) != len(outputs):
            refuse(f"forward() returns {len(results)} tensors, the problem has {len(outputs)} outputs")
        for got, output in zip(results, outputs):
            if not isinstance(got, Tensor) or not got.place.own and got.place.text != output.place.text:
                refuse(f"forward() returns for {output.place.text} what it did not allocate")
            if got.dtype != output.dtype:
                refuse(f"{output.place.text} has the type {got.dtype}, the problem says {output.dtype}")
            if len(got.shape) != len(output.shape) or not all(
                    ours == theirs for ours, theirs in zip(got.shape, output.shape)):
                refuse(f"{output.place.text} has the shape {list(got.shape)}, the problem says {list(output.shape)}")
            got.place.text, got.place.own = output.place.text, False
        return call

    def _become_parameter(self, model, path, tensor):
        if path.endswith(".T"):
            refuse(f"the parameter {path} is a transpose, which PyTorch makes")
        owner, name = self._model.owner_of(model, path), path.split(".")[-1]
        if owner is None or name not in owner._parameters and name not in owner._buffers:
            refuse(f"{type(model).__name__} has no parameter {path}")
        owner._parameters.pop(name, None), owner._buffers.pop(name, None)
        object.__setattr__(owner, name, tensor)

    def _dtype(self, entry):
        return self._torch.bool if entry["python"] == "bool" else self._dtype_of(entry["dtype"])

    def _extent(self, text, symbols):
        names = {"ceil_div": lambda a, b: (a + (b - 1)) // b, "round_up": lambda a, b: (a + (b - 1)) // b * b,
                 "min": min, "max": max, **symbols}
        return Size.of(eval(text.replace("/", "//"), {"__builtins__": {}}, names))  # of the problem, trusted

    def _block(self, call, special):
        """One call as C++: `if (conditions) { …; return; }`. `special`: kernels may use what Triton learns from
        the values of whole numbers (divisible by 16, equal to 1); else they hold for any."""
        Size.call = extra = Call()
        extra.conditions.update(call.conditions)
        scratch = [place for place in call.places if place.own]
        lines = []
        for place in scratch:
            lines.append(f"void* {place.text} = nullptr;")
            lines.append(f"must(cudaMallocAsync(&{place.text}, {place.bytes.text}, stream));")
        for kind, *step in call.steps:
            if kind == "zero":
                (place,) = step
                lines.append(f"must(cudaMemsetAsync({place.text}, 0, {place.bytes.text}, stream));")
            else:
                lines += self._launch_text(step, special, extra)
        lines += [f"must(cudaFreeAsync({place.text}, stream));" for place in scratch]
        condition = " && ".join(extra.conditions) or "true"
        return "\n".join([f"  if ({condition}) {{", *("    " + line for line in lines), "    return;", "  }"])

    def _launch_text(self, step, special, call):
        function, named, options, grid = step
        concrete = {}
        for parameter in function.params:
            value = named[parameter.name]
            if isinstance(value, Tensor):
                from triton.runtime.jit import MockTensor

                concrete[parameter.name] = MockTensor(value.dtype)
            elif isinstance(value, Number):
                concrete[parameter.name] = 0.5
            elif isinstance(value, Size) and not value.text.isdigit():
                concrete[parameter.name] = self._stand_in(value, special, call)
            else:
                concrete[parameter.name] = value.value if isinstance(value, Size) else value
        index, parameters, hidden, metadata = self._compiled.kernel(function, self._run, concrete, options)
        if getattr(metadata, "global_scratch_size", 0):
            refuse(f"{function.__name__} needs memory that Triton allocates for descriptors on the device")
        if math.prod(getattr(metadata, "cluster_dims", (1, 1, 1))) * metadata.num_ctas != 1:
            refuse(f"{function.__name__} is launched in clusters")
        lines, names = [], []
        for at, (name, kind) in enumerate(parameters):
            value, variable = named[name], f"a{at}"
            if isinstance(value, Tensor):
                lines.append(f"const void* {variable} = {value.place.text};")
            elif kind in INTEGERS:
                text = value.text if isinstance(value, Size) else str(value)
                lines.append(f"const auto {variable} = static_cast<{INTEGERS[kind]}>({text});")
            elif kind == "fp32" and (isinstance(value, Number) or math.isfinite(value)):
                text = value.text if isinstance(value, Number) else float(value).hex()
                lines.append(f"const auto {variable} = static_cast<float>({text});")
            else:
                refuse(f"{function.__name__} takes {name} as {kind}")
            names.append(f"&{variable}")
        lines += [f"const void* h{at} = nullptr;" for at in range(hidden)]
        names += [f"&h{at}" for at in range(hidden)]
        extents = ", ".join(extent.text for extent in grid)
        cooperative = "true" if getattr(metadata, "launch_cooperative_grid", False) else "false"
        early = "true" if getattr(metadata, "launch_pdl", False) else "false"
        return ["{", *("  " + line for line in lines), f"  const void* arguments[] = {{{', '.join(names)}}};",
                f"  start({index}, {extents}, {32 * metadata.num_warps}, {metadata.shared}, {cooperative}, {early}, "
                "arguments, stream);", "}"]

    def _stand_in(self, value, special, call):
        """A number that has Triton compile for more values than this one, under conditions that `call` gets."""
        wide = value.value > LARGEST_I32
        if not wide:
            call.require(value, "<=", Size.of(LARGEST_I32))
        if special and value.value == 1:
            call.require(value, "==", Size.of(1))
            return 1
        if special and value.value % 16 == 0:
            call.require(value % 16, "==", Size.of(0))
            return LARGEST_I32 + 1 if wide else 16
        return LARGEST_I32 * 2 + 9 if wide else 7


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Exporter))
