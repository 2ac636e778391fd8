"""capstone_torch.py FILE.py [ARGUMENT…]

Runs a Python program whose PyTorch extensions hold CUDA code, on a machine without a GPU. load_inline() and
load() build the extension's sources by `capstone run`, against the emulator's stand-in for PyTorch's headers.
Each extension is a separate process: a call sends it the bytes of its tensors, and brings back those that
changed. Tensors lie in ordinary memory and say that they are on the GPU.

CAPSTONE_TORCH_BUILD: the command that builds, with its options; default `capstone run`.
"""

import atexit
import ctypes
import os
import runpy
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import types

import torch

MULTIPROCESSORS = 4  # of the GPU that a source sees: few, so that a persistent kernel has rounds
TOLERANCE = 1e-2  # of KernelBench, absolute and relative
# PyTorch's numbers of the types that travel.
TYPES = {torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5,
         torch.float32: 6, torch.float64: 7, torch.bool: 11, torch.bfloat16: 15}
TYPE_OF = {number: kind for kind, number in TYPES.items()}
# What PyTorch gives to nvcc: sources that use the operators of __half do not build with it either.
DEFINITIONS = ("__CUDA_NO_HALF_OPERATORS__", "__CUDA_NO_HALF_CONVERSIONS__",
               "__CUDA_NO_BFLOAT16_CONVERSIONS__", "__CUDA_NO_HALF2_OPERATORS__")
MAIN = """
#include <torch/extension.h>
int main(int, char** words) { return capstone_torch::serve(std::atoi(words[1]), std::atoi(words[2])); }
"""


class BuildFailure(RuntimeError):
    """The extension does not build. `not_judgeable`: it uses what the CPU cannot run."""

    def __init__(self, name, said, not_judgeable):
        super().__init__(f"Error building extension '{name}':\n{said}")
        self.said, self.not_judgeable = said, not_judgeable


class KernelFailure(RuntimeError):
    """A kernel failed, or was found to do what it must not. Its process has ended."""

    def __init__(self, name, said):
        super().__init__(f"{name}(): {said}")
        self.said = said


class Wire:
    """Reads and writes values; the same as `Pipe` of include/libraries/torch/capstone/python.h."""

    def __init__(self, reading, writing):
        self._reading, self._writing = os.fdopen(reading, "rb"), os.fdopen(writing, "wb")
        self._message = bytearray()  # goes out whole, or not at all

    def close(self):
        for end in (self._writing, self._reading):
            try:
                end.close()
            except OSError:
                pass  # the other side has ended

    def begin(self):
        self._message.clear()

    def flush(self):
        self._writing.write(self._message)
        self._writing.flush()

    def put(self, form, *values):
        self._message += struct.pack("<" + form, *values)

    def text(self, data):
        data = data.encode() if isinstance(data, str) else data
        self.put("q", len(data))
        self._message += data

    def get(self, form):
        size = struct.calcsize("<" + form)
        return struct.unpack("<" + form, self._exactly(size))

    def get_text(self):
        return self._exactly(self.get("q")[0])

    def _exactly(self, size):
        data = self._reading.read(size)
        if len(data) != size:
            raise EOFError
        return data


ALIGNED = 256  # bytes: of memory that a GPU allocates


def storage_of(tensor):
    return tensor.untyped_storage() if hasattr(tensor, "untyped_storage") else tensor.storage().untyped()


class Piece:
    """The part of a storage that tensors of a call lie in: what the extension gets as an allocation. An access
    outside of it is a finding although the storage goes on there."""

    def __init__(self, storage, begin, end):
        self.storage, self.begin, self.end = storage, begin, end  # [B] from the storage's begin

    @staticmethod
    def of(tensor):
        size, begin = tensor.element_size(), tensor.storage_offset() * tensor.element_size()
        last = sum((extent - 1) * stride for extent, stride in zip(tensor.shape, tensor.stride()))
        # The rest to a multiple of what is aligned stays: a vector access fails as it does on a GPU.
        return Piece(storage_of(tensor), begin // ALIGNED * ALIGNED,
                     begin + (last + 1) * size if tensor.numel() else begin)

    def meets(self, other):
        return self.storage.data_ptr() == other.storage.data_ptr() and (
            self.begin == other.begin or self.begin < other.end and other.begin < self.end)

    def address(self):
        return self.storage.data_ptr() + self.begin


class Conversation:
    """The memory of one call's tensors."""

    def __init__(self, wire):
        self._wire = wire
        self._pieces = []
        self._tensors = []

    def collect(self, value):
        if isinstance(value, torch.Tensor):
            if value.dtype not in TYPES:
                raise TypeError(f"the stand-in for PyTorch's headers has no {value.dtype}: use one of "
                                + ", ".join(str(kind) for kind in TYPES))
            if value.layout != torch.strided:
                raise TypeError("the stand-in for PyTorch's headers has dense tensors only: use .to_dense()")
            self._tensors.append(value)
            whole = Piece.of(value)
            for each in [each for each in self._pieces if each.meets(whole)]:
                self._pieces.remove(each)
                whole.begin, whole.end = min(whole.begin, each.begin), max(whole.end, each.end)
            self._pieces.append(whole)
        elif isinstance(value, (list, tuple)):
            for each in value:
                self.collect(each)

    def send_pieces(self):
        self._wire.put("q", len(self._pieces))
        for piece in self._pieces:
            size = piece.end - piece.begin
            self._wire.text(ctypes.string_at(piece.address(), size) if size else b"")

    def _place(self, tensor):
        """The piece's number, and the tensor's first element in it."""
        own = Piece.of(tensor)
        index = next(i for i, piece in enumerate(self._pieces) if piece.meets(own))
        return index, tensor.storage_offset() - self._pieces[index].begin // tensor.element_size()

    def send(self, value):
        put = self._wire.put
        if value is None:
            put("c", b"N")
        elif isinstance(value, bool):
            put("cB", b"B", value)
        elif isinstance(value, int):
            put("cq", b"I", value)
        elif isinstance(value, float):
            put("cd", b"D", value)
        elif isinstance(value, str):
            put("c", b"S")
            self._wire.text(value)
        elif isinstance(value, torch.dtype) and value in TYPES:
            put("cb", b"Y", TYPES[value])
        elif isinstance(value, torch.device):
            put("c", b"S")
            self._wire.text(value.type)
        elif isinstance(value, torch.Tensor):
            index, offset = self._place(value)
            put("cqbBqq", b"T", index, TYPES[value.dtype], value.requires_grad, offset, value.dim())
            put(f"{2 * value.dim()}q", *value.shape, *value.stride())
        elif isinstance(value, (list, tuple)):
            put("cq", b"L", len(value))
            for each in value:
                self.send(each)
        else:
            raise TypeError(f"an argument of the type {type(value).__name__} cannot be given to an extension")

    def receive_pieces(self):
        for _ in range(self._wire.get("q")[0]):
            index, data = self._wire.get("q")[0], self._wire.get_text()
            if index == len(self._pieces):
                self._pieces.append(Piece(storage_of(torch.empty(len(data), dtype=torch.uint8)), 0, len(data)))
            if data:
                ctypes.memmove(self._pieces[index].address(), data, len(data))

    def receive(self):
        get = self._wire.get
        tag = get("c")[0]
        if tag in (b"L", b"U"):
            values = [self.receive() for _ in range(get("q")[0])]
            return tuple(values) if tag == b"U" else values
        if tag == b"T":
            index, kind, requires_grad, offset, dims = get("qbBqq")
            sizes, strides = get(f"{dims}q"), get(f"{dims}q")
            for given in self._tensors:  # an argument that the function returns
                if (self._place(given) == (index, offset) and given.dtype == TYPE_OF[kind]
                        and tuple(given.shape) == sizes and given.stride() == strides):
                    return given
            piece, tensor = self._pieces[index], torch.empty(0, dtype=TYPE_OF[kind])
            tensor.set_(piece.storage, offset + piece.begin // tensor.element_size(), sizes, strides)
            return tensor.requires_grad_() if requires_grad else tensor
        if tag == b"S":
            return self._wire.get_text().decode()
        if tag == b"Y":
            return TYPE_OF[get("b")[0]]
        if tag == b"N":
            return None
        value = get({b"B": "B", b"I": "q", b"D": "d"}[tag])[0]
        return bool(value) if tag == b"B" else value


class Extension(types.ModuleType):
    """A process that answers calls of an extension's functions."""

    def __init__(self, name, work):
        """`work`: the folder of the program. Reports of its kernels need it."""
        super().__init__(name)
        self._work = work
        program = os.path.join(work.name, "extension")
        to_it, from_me = os.pipe()
        to_me, from_it = os.pipe()
        self._said = tempfile.TemporaryFile()
        self._process = subprocess.Popen([program, str(to_it), str(from_it)], pass_fds=(to_it, from_it),
                                         stdin=subprocess.DEVNULL, stderr=self._said)
        os.close(to_it)
        os.close(from_it)
        self._wire = Wire(to_me, from_me)
        self._status = None
        self._functions = []
        EXTENSIONS.append(self)
        try:
            while function := self._wire.get_text().decode():
                self._functions.append(function)
                library, _, operator = function.rpartition(".")
                place = self
                if library:  # of TORCH_LIBRARY
                    place = vars(torch.ops).setdefault(library, types.SimpleNamespace())
                setattr(place, operator, self._caller(function))
        except EOFError:
            raise KernelFailure(name, self.close()) from None

    def __getattr__(self, function):
        raise AttributeError(f"the extension has no {function}(); it has " +
                             (", ".join(self.__dict__.get("_functions", [])) or "no function"))

    def _caller(self, function):
        def call(*arguments, **named):
            return self._call(function, arguments, named)

        call.__name__ = call.__qualname__ = function
        return call

    def _call(self, function, arguments, named):
        if self._status is not None:
            raise KernelFailure(function, "an earlier kernel of this extension failed")
        conversation = Conversation(self._wire)
        conversation.collect([*arguments, *named.values()])
        sys.stdout.flush()
        try:
            self._wire.begin()
            self._wire.put("c", b"!")
            self._wire.text(function)
            conversation.send_pieces()
            conversation.send(arguments)
            self._wire.put("q", len(named))
            for name, value in named.items():
                self._wire.text(name)
                conversation.send(value)
            self._wire.flush()
            if self._wire.get("c")[0] == b"+":
                conversation.receive_pieces()
                return conversation.receive()
            kind, what = self._wire.get_text().decode(), self._wire.get_text().decode(errors="replace")
        except (EOFError, BrokenPipeError):
            raise KernelFailure(function, self.close()) from None
        if kind == "KernelFailure":
            raise KernelFailure(function, self.close() or what)
        raise {"TypeError": TypeError, "IndexError": IndexError, "ValueError": ValueError,
               "NotImplementedError": NotImplementedError}.get(kind, RuntimeError)(what)

    def close(self):
        """Ends the process. @return what it said about its kernels."""
        if self._status is None:
            self._wire.close()
            self._status = self._process.wait()
            self._said.seek(0)
            self._text = self._said.read().decode(errors="replace").strip()
            self._work.cleanup()
        return self._text or f"its process ended with status {self._status}"

    def finding(self):
        """What was found in the extension's kernels, else "". The process ends."""
        said = self.close()
        return said if self._status != 0 else self._text


EXTENSIONS = []


def builder(name):
    command = shlex.split(os.environ.get("CAPSTONE_TORCH_BUILD", "")) or ["capstone", "run"]
    if shutil.which(command[0]) is None:
        raise BuildFailure(name, f"{command[0]} is not on PATH: CAPSTONE_TORCH_BUILD must name the command "
                                 "that builds CUDA programs", False)
    return command


def options_of(name, flags, folders):
    """Those of a compiler's flags that mean something here."""
    options = ["-D", f"TORCH_EXTENSION_NAME={name}"]
    for definition in DEFINITIONS:
        options += ["-D", definition]
    flags = [word for flag in flags or [] for word in shlex.split(flag)]
    for i, flag in enumerate(flags):
        if flag.startswith("-U"):  # "-U__CUDA_NO_HALF_OPERATORS__" asks for them
            gone = flag[2:]
            options = [word for k, word in enumerate(options)
                       if word != gone and not (word == "-D" and options[k + 1] == gone)]
        elif flag in ("-D", "-I") and i + 1 < len(flags):
            options += [flag, flags[i + 1]]
        elif flag[:2] in ("-D", "-I") and len(flag) > 2:
            options += [flag[:2], flag[2:]]
        elif flag.startswith("-std=") and flag[5:].replace("gnu", "c") in ("c++20", "c++23"):
            options += ["--std", flag[5:].replace("gnu", "c")]
    for folder in folders or []:
        options += ["-I", str(folder)]
    return options


def build(name, sources, options, work):
    command = builder(name) + options
    for source in sources[1:]:
        command += ["-s", source]
    done = subprocess.run([*command, "-o", os.path.join(work.name, "extension"), sources[0]],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        work.cleanup()
        said = (done.stderr + done.stdout).replace(work.name + os.sep, "").strip()
        raise BuildFailure(name, said, done.returncode == 3)
    return Extension(name, work)


def as_list(sources):
    return [sources] if isinstance(sources, str) else list(sources or [])


def beginning_with(header, text):
    """An empty first line makes room for the header: messages then have the lines of the string."""
    return f"#include <{header}>" + (text if text.startswith("\n") else "\n#line 1\n" + text)


def load_inline(name, cpp_sources, cuda_sources=None, functions=None, extra_cflags=None,
                extra_cuda_cflags=None, extra_include_paths=None, no_implicit_headers=False,
                is_python_module=True, **other):
    """As torch.utils.cpp_extension.load_inline(). Without CUDA code it is that one."""
    cuda = as_list(cuda_sources)
    if not cuda:
        return OWN["load_inline"](name, cpp_sources, cuda_sources=cuda_sources, functions=functions,
                                  extra_cflags=extra_cflags, extra_cuda_cflags=extra_cuda_cflags,
                                  extra_include_paths=extra_include_paths, is_python_module=is_python_module,
                                  **({"no_implicit_headers": True} if no_implicit_headers else {}), **other)
    functions = [functions] if isinstance(functions, str) else functions
    if isinstance(functions, list):
        functions = {function: function for function in functions}
    glue = ""
    if functions is not None:
        glue = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n" + "".join(
            f'm.def("{each}", torch::wrap_pybind_function({each}));\n' for each in functions) + "}\n"
    cpp, cuda = "\n".join(as_list(cpp_sources)), "\n".join(cuda)
    if not no_implicit_headers:
        cpp, cuda = beginning_with("torch/extension.h", cpp), beginning_with("torch/types.h", cuda)
    work = tempfile.TemporaryDirectory()
    source, main = os.path.join(work.name, name + ".cu"), os.path.join(work.name, name + ".cpp")
    # Where the C++ sources only declare functions, one compilation does.
    together = "{" not in cpp and "#" not in cpp.replace("#include <torch/extension.h>", "")
    with open(source, "w", encoding="utf-8") as file:
        file.write(cuda + "\n" + (cpp + "\n" + glue + MAIN if together else ""))
    if not together:
        with open(main, "w", encoding="utf-8") as file:
            file.write(cpp + "\n" + glue + MAIN)
    return build(name, [source] if together else [source, main],
                 options_of(name, as_list(extra_cflags) + as_list(extra_cuda_cflags), extra_include_paths),
                 work)


def load(name, sources, extra_cflags=None, extra_cuda_cflags=None, extra_include_paths=None,
         is_python_module=True, **other):
    """As torch.utils.cpp_extension.load(). Without CUDA code it is that one."""
    sources = [os.path.abspath(source) for source in as_list(sources)]
    if not any(source.endswith(".cu") for source in sources):
        return OWN["load"](name, sources, extra_cflags=extra_cflags, extra_cuda_cflags=extra_cuda_cflags,
                           extra_include_paths=extra_include_paths, is_python_module=is_python_module,
                           **other)
    work = tempfile.TemporaryDirectory()
    main = os.path.join(work.name, name + "_main.cpp")
    with open(main, "w", encoding="utf-8") as file:
        file.write(MAIN)
    folders = as_list(extra_include_paths) + sorted({os.path.dirname(source) for source in sources})
    return build(name, sources + [main],
                 options_of(name, as_list(extra_cflags) + as_list(extra_cuda_cflags), folders), work)


# ---- Tensors that say they are on a GPU


def on_cpu(value):
    """A device that means a GPU means the CPU here."""
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
        return "cpu"
    return value


class OnOrdinaryMemory(torch.overrides.TorchFunctionMode):
    """Makes tensors for a GPU in ordinary memory."""

    ANSWERS = {torch.Tensor.is_cuda.__get__: lambda tensor, *_: True,
               torch.Tensor.is_cpu.__get__: lambda tensor, *_: False,
               torch.Tensor.cuda: lambda tensor, *_, **__: tensor,
               torch.Tensor.get_device: lambda tensor: 0,
               torch.Tensor.pin_memory: lambda tensor, *_, **__: tensor}

    def __torch_function__(self, function, kinds, arguments=(), named=None):
        named = named or {}
        if answer := self.ANSWERS.get(function):
            return answer(*arguments, **named)
        if any(on_cpu(value) is not value for value in (*arguments, *named.values())):
            arguments = tuple(on_cpu(value) for value in arguments)
            named = {name: on_cpu(value) for name, value in named.items()}
        return function(*arguments, **named)


OWN = {}
MODE = OnOrdinaryMemory()


def install():
    """Before the program's modules are loaded."""
    properties = types.SimpleNamespace(name="capstone's emulator", major=9, minor=0, warp_size=32,
                                       multi_processor_count=MULTIPROCESSORS, total_memory=80 << 30)
    for name, value in {"get_device_properties": lambda device=None: properties,
                        "get_device_capability": lambda device=None: (9, 0),
                        "get_device_name": lambda device=None: properties.name,
                        "is_available": lambda: True, "device_count": lambda: 1, "current_device": lambda: 0,
                        "synchronize": lambda device=None: None, "empty_cache": lambda: None,
                        "set_device": lambda device: None, "manual_seed": lambda seed: None,
                        "manual_seed_all": lambda seed: None}.items():
        setattr(torch.cuda, name, value)
    torch.set_default_device = lambda device: None
    from torch.utils import cpp_extension  # would warn that there is no GPU

    OWN.update(load=cpp_extension.load, load_inline=cpp_extension.load_inline)
    cpp_extension.load, cpp_extension.load_inline = load, load_inline
    MODE.__enter__()
    atexit.register(lambda: [each.close() for each in EXTENSIONS])


def tensors_of(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def compare(new, reference):
    """Calls ModelNew of a program in KernelBench's form, and Model of its reference where there is one."""
    results = {}
    for source, kind in ((new, "ModelNew"), (reference, "Model")):
        if kind not in source:
            continue
        torch.manual_seed(0)
        model = source[kind](*reference.get("get_init_inputs", list)())
        if "ModelNew" in results:
            states = results["ModelNew"][0].state_dict(), model.state_dict()
            if {k: v.shape for k, v in states[0].items()} == {k: v.shape for k, v in states[1].items()}:
                model.load_state_dict(states[0])
        torch.manual_seed(1)
        inputs = reference["get_inputs"]()
        with torch.no_grad():
            results[kind] = model, tensors_of(model(*inputs))
    if len(results) < 2:
        print("ModelNew: called once, there is no Model to compare with")
        return 0
    new, old = results["ModelNew"][1], results["Model"][1]
    if [x.shape for x in new] != [x.shape for x in old]:
        print(f"ModelNew: shapes {[list(x.shape) for x in new]}, Model's are {[list(x.shape) for x in old]}")
        return 1
    worst = max(float((x.double() - y.double()).abs().max()) if x.numel() else 0.0 for x, y in zip(new, old))
    right = all(torch.allclose(x.double(), y.double(), rtol=TOLERANCE, atol=TOLERANCE)
                for x, y in zip(new, old))
    print(f"ModelNew: {'agrees with' if right else 'differs from'} Model, largest difference {worst:.3g}")
    return 0 if right else 1


def main(words):
    if not words:
        print(__doc__, file=sys.stderr)
        return 2
    path = os.path.abspath(words[0])
    sys.argv = [path, *words[1:]]
    sys.path[0] = os.path.dirname(path)
    install()
    status = 0
    try:
        names = runpy.run_path(path, run_name="__main__")
        if "ModelNew" in names:
            reference = names
            if words[1:] and words[1].endswith(".py"):
                reference = runpy.run_path(os.path.abspath(words[1]), run_name="reference")
            if "get_inputs" in reference:
                status = compare(names, reference)
            else:
                print(f"{words[0]} defines ModelNew and no get_inputs(), so nothing was called: name the file "
                      "of the problem after --", file=sys.stderr)
                status = 2
    except (KernelFailure, BuildFailure) as failure:
        for each in EXTENSIONS:
            each.close()
        place = ""
        trace = failure.__traceback__
        while trace:
            if trace.tb_frame.f_code.co_filename == path:
                place = f"  called at {os.path.basename(path)}:{trace.tb_lineno}\n"
            trace = trace.tb_next
        sys.stdout.flush()
        sys.stderr.write(failure.said + "\n" + place)
        return 3 if getattr(failure, "not_judgeable", "not judgeable on the CPU" in failure.said) else 1
    sys.stdout.flush()
    for each in EXTENSIONS:
        if said := each.finding():
            sys.stderr.write(said + "\n")
            status = status or each._status or 0
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
