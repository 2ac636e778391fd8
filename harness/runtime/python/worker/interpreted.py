"""Triton kernels on a CPU: Triton's interpreter, made to compute as a GPU does and to look at every access.

The interpreter runs one program of the grid after the other. It performs loads and stores wherever they point
to, keeps bfloat16 as whole numbers that it adds and multiplies as such, and takes the first value for every
race. So three things are put in place before a candidate is loaded:

- Memory: a lane that leaves every tensor that the kernel was given is a finding before it is performed, and
  so is an element over which two programs race.
- Arithmetic: bfloat16 is computed in float32 and rounded once; tl.dot rounds float32 to TF32 unless told
  otherwise, and adds up in float16 as coarsely as the tensor cores do.
- Surroundings: what a source asks of the GPU at its top level has an answer, tuning takes one configuration
  after the other, and torch.empty() returns poison.

The candidate shares the process and can undo all of this: findings help an honest author. Whether outputs are
right is decided elsewhere.
"""

import sys
import types

import numpy
import torch

MULTIPROCESSORS = 4  # of the GPU that a source sees: few, so that a persistent kernel has rounds
SEVERAL = -1  # in the place of a program: more than one
TENSOR_CORE_DEPTH = 16  # products of float16 that are added up at once
FAR = 1 << 30  # bytes from a tensor, beyond which an address has nothing to do with it


class Finding(BaseException):
    """What a kernel must not do. Not an Exception: the interpreter and candidates catch those."""

    def __init__(self, message, hint, place):
        super().__init__(message)
        self.hint, self.place = hint, place


class Region:
    """A tensor that a kernel was given: its bytes, and which programs of the launch touched which element."""

    def __init__(self, name, begin, end, unit):
        self.name, self.begin, self.end, self.unit = name, begin, end, unit
        count = (end - begin) // unit
        # Program + 1; 0: none. `when`: the number of the access.
        self.writer, self.written = numpy.zeros(count, numpy.int32), numpy.zeros(count, numpy.int64)
        self.reader, self.read = numpy.zeros(count, numpy.int32), numpy.zeros(count, numpy.int64)
        self.atomic = numpy.zeros(count, bool)  # the last write was an atomic operation

    def element(self, address):
        return (address - self.begin) // self.unit

    def __str__(self):
        return f"{self.name}, which has {(self.end - self.begin) // self.unit} elements"


class Launch:
    """The accesses of one kernel launch."""

    def __init__(self, regions, files):
        self._regions = sorted(regions, key=lambda region: region.begin)
        self._begins = numpy.array([region.begin for region in self._regions], numpy.uint64)
        self._ends = numpy.array([region.end for region in self._regions], numpy.uint64)
        self._files = files
        self._now = 0
        self._known = {}  # program → {program: last access that it is ordered behind}
        self._released = {}  # address of an atomic → the same, of who takes it next

    def parts(self, lanes, size, what):
        """(region, positions in `lanes`) for all regions that these addresses lie in."""
        if lanes.size == 0:
            return
        low, high = int(lanes.min()), int(lanes.max()) + size
        for region in self._regions:
            if region.begin <= low and high <= region.end:
                yield region, slice(None)
                return
        owner = numpy.searchsorted(self._begins, lanes, "right").astype(int) - 1
        inside = owner >= 0
        inside[inside] = lanes[inside] + numpy.uint64(size) <= self._ends[owner[inside]]
        if not inside.all():
            self._outside(int(lanes[~inside][0]), size, what, int((~inside).sum()))
        for index in numpy.unique(owner):
            yield self._regions[index], owner == index

    def _outside(self, address, size, what, lanes):
        def distance(region):
            return max(region.begin - address, address + size - region.end)

        near = min(self._regions, key=distance, default=None)
        where = (f"element {near.element(address)} of {near}" if near and distance(near) < FAR
                 else f"address {address:#x}, which is in no tensor that the kernel was given")
        others = f" ({lanes} lanes leave it)" if lanes > 1 else ""
        raise self._finding(f"{self._program()} {what} {where}{others}",
                            "give the access a mask that is false for lanes outside the tensor; check the "
                            "strides and the order of the pointer's terms")

    def read(self, lanes, size):
        program = self._current()
        for region, positions in self.parts(lanes, size, "loads"):
            at = self._elements(region, lanes[positions], size)
            if at is None:
                continue
            other = (region.writer[at] != 0) & (region.writer[at] != program)
            if other.any():
                self._race(region, at[other], region.writer, region.written, "loads", "stored")
            before = region.reader[at]
            region.reader[at] = numpy.where((before == 0) | (before == program), program, SEVERAL)
            region.read[at] = self._tick()

    def write(self, lanes, size, changed, atomic):
        """`changed`: which lanes store a value that memory does not have yet."""
        program = self._current()
        for region, positions in self.parts(lanes, size, "updates" if atomic else "stores"):
            at = self._elements(region, lanes[positions], size)
            if at is None:
                continue
            new = numpy.repeat(changed[positions], at.size // max(1, changed[positions].size))
            other = new & (region.writer[at] != 0) & (region.writer[at] != program)
            if atomic:
                other &= ~region.atomic[at]
            if other.any():
                self._race(region, at[other], region.writer, region.written, "stores",
                           "stored another value")
            other = new & (region.reader[at] != 0) & (region.reader[at] != program)
            if other.any():
                self._race(region, at[other], region.reader, region.read, "stores", "loaded the old value")
            together = atomic & region.atomic[at] & (region.writer[at] != program)
            own_store = ~region.atomic[at] & (region.writer[at] == program)
            region.writer[at] = numpy.where(together, SEVERAL, program)
            region.written[at] = self._tick()
            region.atomic[at] = atomic & ~own_store  # its own atomic operation does not undo a plain store

    def hand_over(self, address):
        """An atomic operation on one element orders what comes before it and after it."""
        program = self._current()
        known = self._known.setdefault(program, {})
        known.update({other: max(when, known.get(other, 0))
                      for other, when in self._released.get(address, {}).items()})
        self._released[address] = {**known, program: self._tick()}

    def _elements(self, region, lanes, size):
        """The elements that the lanes touch; None for parts of elements, which are not followed."""
        if size % region.unit:
            return None
        at = ((lanes - numpy.uint64(region.begin)) // numpy.uint64(region.unit)).astype(numpy.int64)
        width = size // region.unit
        return at if width == 1 else (at[:, None] + numpy.arange(width)).ravel()

    def _race(self, region, at, owner, when, does, did):
        program = self._current()
        known = self._known.get(program, {})
        for element in at:
            other = int(owner[element])
            if other == SEVERAL and known or other != SEVERAL and when[element] <= known.get(other, 0):
                continue  # an atomic operation orders the two
            who = "several other programs" if other == SEVERAL else self._name(other)
            raise self._finding(
                f"race between programs: {self._program()} {does} element {element} of {region.name}, which "
                f"{who} {did} without an atomic operation",
                "programs of a grid run at the same time and in any order: give each its own elements, or "
                "use tl.atomic_add, or a second kernel")

    def _finding(self, message, hint):
        frame = sys._getframe(1)
        while frame and frame.f_code.co_filename not in self._files:
            frame = frame.f_back
        return Finding(message, hint, (frame.f_code.co_filename, frame.f_lineno) if frame else None)

    def _tick(self):
        self._now += 1
        return self._now

    def _current(self):
        return 1 + self._linear(interpreter().interpreter_builder.grid_idx)

    @staticmethod
    def _linear(index):
        _, height, depth = interpreter().interpreter_builder.grid_dim
        return (index[0] * height + index[1]) * depth + index[2]

    def _program(self):
        return self._name(self._current())

    @staticmethod
    def _name(program):
        _, height, depth = interpreter().interpreter_builder.grid_dim
        index = program - 1
        return f"program ({index // (height * depth)}, {index // depth % height}, {index % depth})"


def interpreter():
    import triton.runtime.interpreter

    return triton.runtime.interpreter


class Memory:
    """In the place of the interpreter's own loads, stores and atomic operations."""

    def __init__(self, own, watch):
        self._own, self._watch = own, watch

    def __getattr__(self, name):
        return getattr(self._own, name)

    def load(self, pointers, mask, other, dtype):
        self._watch.launch.read(pointers[mask], numpy.dtype(dtype).itemsize)
        return self._own.load(pointers, mask, other, dtype)

    def store(self, pointers, value, mask):
        launch, lanes, new = self._watch.launch, pointers[mask], numpy.ascontiguousarray(value)[mask]
        for _ in launch.parts(lanes, new.itemsize, "stores"):
            pass  # before anything is read there
        launch.write(lanes, new.itemsize, self._differ(lanes, new), False)
        self._own.store(pointers, value, mask)
        if lanes.size > 1 and (differ := self._differ(lanes, new)).any():
            at = lanes[differ][0]
            region, _ = next(launch.parts(lanes[differ][:1], new.itemsize, "stores"))
            raise launch._finding(f"race between lanes: one tl.store stores several values to element "
                                  f"{region.element(int(at))} of {region.name}",
                                  "two lanes have the same address: check the strides, or mask all but one")

    def atomic_rmw(self, operation, pointers, value, mask, order):
        self._update(pointers[mask], value.itemsize, order)
        return self._own.atomic_rmw(operation, pointers, value, mask, order)

    def atomic_cas(self, pointers, compared, value, order):
        self._update(pointers.ravel(), value.itemsize, order)
        return self._own.atomic_cas(pointers, compared, value, order)

    def _update(self, lanes, size, order):
        self._watch.launch.write(lanes, size, numpy.ones(lanes.size, bool), True)
        if lanes.size == 1 and order != self._own.MEM_SEMANTIC.RELAXED:
            self._watch.launch.hand_over(int(lanes[0]))

    def _differ(self, lanes, new):
        """Which lanes have another value in memory, bit by bit."""
        bits = numpy.dtype(f"u{new.itemsize}")
        old = self._own.load(lanes, numpy.ones(lanes.shape, bool), numpy.zeros(lanes.shape, bits), bits)
        return old != new.view(bits)


class Watch:
    """What the judge's tensors are called and where they lie, and the launch that runs now."""

    def __init__(self, files):
        self._files = files
        self.launch = Launch([], files)
        self.judged = []  # (begin, end) of the judge's tensors, which lie in one block of memory
        self.patched = set()  # modules whose language the interpreter has replaced for this launch

    def begin(self, named):
        regions = {}
        for name, tensor in named:
            begin = tensor.data_ptr()
            for low, high in self.judged:
                if low <= begin < high:
                    break
            else:
                storage = tensor.untyped_storage()
                low, high = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            regions.setdefault((low, high), Region(name, low, high, tensor.element_size()))
        self.launch = Launch(list(regions.values()), self._files)
        self.patched = set()


def tensors_in(name, argument):
    if isinstance(argument, torch.Tensor):
        yield name, argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from tensors_in(name, part)
    elif hasattr(argument, "base"):  # a descriptor, or a tensor under another type
        yield from tensors_in(name, argument.base)


# ---- Arithmetic


def widened(bits):
    """bfloat16, as the interpreter keeps it, in float32."""
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def narrowed(values):
    """float32 rounded to the nearest bfloat16, ties to even."""
    values = numpy.ascontiguousarray(values, numpy.float32)
    bits = values.view(numpy.uint32)
    rounded = (bits + ((bits >> 16) & 1) + 0x7FFF) >> 16
    return numpy.where(numpy.isnan(values), 0x7FC0, rounded).astype(numpy.uint16)


def in_tf32(values):
    """float32 with 10 bits behind the point, as the tensor cores take it; ties away from zero."""
    bits = numpy.ascontiguousarray(values, numpy.float32).view(numpy.uint32)
    return numpy.where(numpy.isfinite(values), (bits + 0x1000) & 0xFFFFE000, bits).view(numpy.float32)


def compute_as_a_gpu(triton_interpreter):
    import triton.language as tl

    builder, handle = triton_interpreter.InterpreterBuilder, triton_interpreter.TensorHandle
    precisions = triton_interpreter._ir.INPUT_PRECISION
    to_nearest = (None, triton_interpreter._ir.ROUNDING_MODE.RTNE)

    def is_bf16(operand):
        return operand.get_element_ty() == tl.bfloat16

    def values(operand):
        if is_bf16(operand):
            return widened(operand.data)
        if operand.dtype.is_fp8():
            half = triton_interpreter._convert_float(operand.data, operand.dtype.scalar, tl.float16, None)
            return half.view(numpy.float16)
        return operand.data

    def in_float32(own):
        """An operation of NumPy on operands of which some may be bfloat16."""

        def compute(self, *arguments):
            *operands, operation = arguments
            result_type = operands[-1] if len(operands) == 3 else operands[0]
            if operation is numpy.where or not is_bf16(result_type):
                return own(self, *arguments)
            result = operation(*[values(operand) for operand in operands])
            return handle(result if result.dtype == bool else narrowed(result), tl.bfloat16)

        return compute

    for name in ("unary_op", "binary_op", "ternary_op"):
        setattr(builder, name, in_float32(getattr(builder, name)))

    own_fma, own_cast, own_convert = builder.create_fma, builder.cast_impl, builder.create_fp_to_fp

    def create_fma(self, x, y, z):
        if not is_bf16(z):
            return own_fma(self, x, y, z)
        return handle(narrowed(values(x) * values(y) + values(z)), tl.bfloat16)

    def cast_impl(self, source, target):
        if source.dtype.scalar == tl.float32 and target.scalar == tl.bfloat16:
            return handle(narrowed(source.data), tl.bfloat16)
        return own_cast(self, source, target)

    def create_fp_to_fp(self, source, target, rounding):
        if (source.dtype.scalar, target.scalar) == (tl.float32, tl.bfloat16) and rounding in to_nearest:
            return handle(narrowed(source.data), tl.bfloat16)
        return own_convert(self, source, target, rounding)

    def get_bf16(self, value):
        return handle(narrowed(numpy.array([value], numpy.float32)), tl.bfloat16)

    def create_dot(self, a, b, d, precision, most_imprecise):
        kind = d.data.dtype
        x, y = values(a), values(b)
        if kind == numpy.float32:
            if a.dtype.scalar == tl.float32 and precision == precisions.TF32:
                x, y = in_tf32(x), in_tf32(y)
            return handle(numpy.matmul(x.astype(kind), y.astype(kind)) + d.data, d.dtype.scalar)
        if kind != numpy.float16:
            return handle(numpy.matmul(x, y, dtype=kind) + d.data, d.dtype.scalar)
        total, x, y = d.data, x.astype(numpy.float32), y.astype(numpy.float32)
        for begin in range(0, x.shape[-1], TENSOR_CORE_DEPTH):
            part = slice(begin, begin + TENSOR_CORE_DEPTH)
            total = (total + numpy.matmul(x[..., part], y[..., part, :])).astype(kind)
        return handle(total, d.dtype.scalar)

    reduction = triton_interpreter.ReduceScanOpInterface
    own_apply = reduction.apply

    def with_type(tensor, data, kind):
        return tl.core.tensor(handle(data, kind),
                              tl.block_type(kind, tensor.shape) if tensor.type.is_block() else kind)

    def apply(self, operand):
        """A sum, a maximum or a scan: of bfloat16 in float32, rounded once."""
        if isinstance(operand, tuple) or operand.dtype != tl.bfloat16:
            return own_apply(self, operand)
        result = own_apply(self, with_type(operand, widened(operand.handle.data), tl.float32))
        if result.dtype != tl.float32:
            return result  # a position
        return with_type(result, narrowed(result.handle.data), tl.bfloat16)

    reduction.apply = apply
    for function in (create_fma, cast_impl, create_fp_to_fp, get_bf16, create_dot):
        setattr(builder, function.__name__, function)


# ---- Surroundings


class Driver:
    """What sources ask the active driver of Triton for at their top level."""

    class utils:
        @staticmethod
        def get_device_properties(device):
            return {"multiprocessor_count": MULTIPROCESSORS, "max_shared_mem": 232448, "warpSize": 32,
                    "max_num_regs": 65536}

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0

    def get_current_target(self):
        from triton.backends.compiler import GPUTarget

        return GPUTarget("cuda", 90, 32)


def poisoned(own):
    def allocate(*arguments, **options):
        tensor = own(*arguments, **options)
        if options.get("out") is None and tensor.numel() and tensor.layout == torch.strided:
            storage = tensor.untyped_storage()
            tensor.new_empty(0, dtype=torch.uint8).set_(storage, 0, (storage.nbytes(),), (1,)).fill_(0xFF)
        return tensor

    return allocate


def stand_in_for_a_gpu():
    import triton
    from triton.runtime.autotuner import Autotuner

    triton.runtime.driver.set_active(Driver())
    properties = types.SimpleNamespace(name="Triton's interpreter", major=9, minor=0, warp_size=32,
                                       multi_processor_count=MULTIPROCESSORS, total_memory=80 << 30)
    torch.cuda.get_device_properties = lambda device=None: properties
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    torch.cuda.synchronize = lambda device=None: None

    def in_turn(self, *arguments, config, **options):
        """For a "time": the next configuration is the fastest, so that the cases run several of them."""
        return [float((self.configs.index(config) - len(self.cache)) % len(self.configs))] * 3

    Autotuner._bench = in_turn
    torch.empty, torch.empty_like = poisoned(torch.empty), poisoned(torch.empty_like)


def install(files):
    """Before the candidate is loaded. @return the watch, and Triton's version."""
    import triton

    if not hasattr(torch.Tensor, "untyped_storage"):  # PyTorch 1
        torch.Tensor.untyped_storage = lambda tensor: tensor.storage().untyped()
    triton_interpreter = interpreter()
    watch = Watch(files)
    compute_as_a_gpu(triton_interpreter)
    triton_interpreter._interpreter = Memory(triton_interpreter._interpreter, watch)
    try:
        from triton.backends.nvidia.compiler import min_dot_size

        triton_interpreter.interpreter_builder.codegen_fns["min_dot_size"] = min_dot_size(
            Driver().get_current_target())
    except ImportError:
        pass  # a Triton built without NVIDIA's backend: it allows every size
    executor = triton_interpreter.GridExecutor
    own_call = executor.__call__

    def call(self, *arguments, **options):
        named = [*zip(self.arg_names, arguments), *options.items()]
        watch.begin(pair for name, argument in named for pair in tensors_in(name, argument))
        return own_call(self, *arguments, **options)

    executor.__call__ = call
    own_patch = triton_interpreter._patch_lang

    def patch_once(function):
        """The interpreter does so for each call of a function such as tl.sum, which takes most of its time."""
        module = id(function.__globals__)
        if module in watch.patched:
            return triton_interpreter._LangPatchScope()
        watch.patched.add(module)
        return own_patch(function)

    if hasattr(triton_interpreter, "_LangPatchScope"):
        triton_interpreter._patch_lang = patch_once
    stand_in_for_a_gpu()
    return watch, triton.__version__
