"""worker.py --device cpu|cuda --precision CLASS --reference reference.py (--arm NAME | --candidate FILE.py)

Runs a PyTorch module on the judge's tensors. Started by capstone; uses descriptor 3 (protocol.md). Trusted
while it runs a problem's reference; untrusted as soon as a candidate is loaded: all its answers are then
unverified claims.
"""

import argparse
import ast
import gc
import importlib.metadata
import importlib.util
import os
import re
import sys
import traceback

sys.dont_write_bytecode = True  # do not write into the problem's or the student's folder

from failures import memory_that_ran_out  # noqa: E402
from wire import Wire  # noqa: E402

LONGEST_TRACE = 16_000
# internal detail that does not help the reader
ALLOCATORS_OWN = re.compile(r"\[enforce fail at .*?\] .*?== 0\. |: no message$")
FARTHEST = 1e9  # in units of the tolerance
NOISE_RMS, NOISE_MOST = 8, 2  # limits of an element's error, in units of the reference's own rounding


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


ANOTHER = ("choose another python3 with --python (none: run without PyTorch, if the problem has a native "
           "baseline)")


def one_line(problem):
    return f"{type(problem).__name__}: {(str(problem).strip() or 'no message').splitlines()[0]}"


class Refusal(Exception):
    """A failure with a ready-made message."""

    def __init__(self, kind, message, hint="", cause=None, place=None):
        super().__init__(message)
        self.kind, self.hint, self.cause, self.place = kind, hint, cause, place


def trace_of(problem):
    return "".join(traceback.format_exception(type(problem), problem, problem.__traceback__))[-LONGEST_TRACE:]


# Operators that only make, move or view tensors.
HOUSEKEEPING = {"empty", "empty_like", "empty_strided", "new_empty", "zeros", "zeros_like", "zero_", "fill_",
                "view", "reshape", "flatten", "contiguous", "as_strided", "to", "_to_copy", "copy_", "clone",
                "detach", "alias", "select", "slice", "narrow", "transpose", "t", "permute", "expand",
                "unsqueeze", "squeeze", "set_", "resolve_conj", "resolve_neg", "split", "chunk", "unbind"}


# Package → what its language is called.
LANGUAGES = {"triton": "Triton", "tilelang": "TileLang", "cutlass": "CuTe-DSL"}


def version_of(name):
    """Of an imported package; CuTe-DSL's module does not say it, but what was installed does."""
    if version := getattr(sys.modules.get(name), "__version__", ""):
        return version
    try:
        return importlib.metadata.version("nvidia-cutlass-dsl" if name == "cutlass" else name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def languages_of(path):
    """What a source imports of these, with versions: ["Triton 3.6.0"]."""
    with open(path, "rb") as text:
        tree = ast.parse(text.read(), path)
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return [f"{LANGUAGES[name]} {version_of(name)}".strip() for name in LANGUAGES if name in names]


def is_cuda_extension(problem, files):
    """Whether PyTorch failed to build an extension (load_inline, load) that has CUDA code."""
    frames = traceback.extract_tb(problem.__traceback__)
    if not any(frame.filename.endswith("cpp_extension.py") for frame in frames):
        return False
    text = "".join(open(path, encoding="utf-8", errors="replace").read() for path in files)
    return bool(re.search(r"cuda_sources|__global__|\.cu\b", text))


def failure_of(problem, files, on_cpu, of_candidate, kind="exception", interpreted=False):
    """An exception as an answer: one line, the innermost place in one of `files`, a hint if there is one, the
    whole traceback. `interpreted`: Triton runs here, so its name in a message is no sign of a missing GPU."""
    if isinstance(problem, Refusal):
        answer = {"ok": False, "kind": problem.kind, "message": str(problem), "hint": problem.hint}
        if problem.place:
            answer["file"], answer["line"] = problem.place
        if problem.cause:
            answer["traceback"] = trace_of(problem.cause)
        return answer
    while type(problem).__name__ == "InterpreterError" and problem.__cause__:
        problem = problem.__cause__  # Triton's interpreter wraps what a kernel raises
    message = one_line(problem)
    answer = {"ok": False, "kind": kind, "message": message}
    for frame in traceback.extract_tb(problem.__traceback__):
        if frame.filename in files:
            answer.update(file=frame.filename, line=frame.lineno)
    if type(problem).__name__ in ("BuildFailure", "KernelFailure") and hasattr(problem, "said"):
        return failure_of_extension(problem, answer)
    if isinstance(problem, SyntaxError) and problem.filename in files:
        answer.update(file=problem.filename, line=problem.lineno or 0)
    if memory := memory_that_ran_out(problem):
        answer.update(kind="out_of_memory", message=f"out of {memory}: {ALLOCATORS_OWN.sub('', message)}")
        if of_candidate:
            answer["hint"] = (f"use smaller intermediate tensors, or a machine with more {memory}; "
                              "other programs on this machine also use some")
        else:
            answer["hint"] = (f"use a machine with more {memory}, or smaller sizes "
                              "(for an imported problem: capstone init --kernelbench FILE --memory GB)")
    elif of_candidate and isinstance(problem, ModuleNotFoundError) and (
            language := LANGUAGES.get((problem.name or "").split(".")[0])):
        answer.update(kind="not_judgeable",
                      hint=f"install {language} for {sys.executable}, or name the folder of its unpacked wheels "
                           "by --python-path DIR" + ("; its kernels need a GPU" if on_cpu else ""))
    elif on_cpu and of_candidate and is_cuda_extension(problem, files):
        answer.update(kind="not_judgeable", message="its extension has CUDA code, which needs a GPU and nvcc",
                      hint="it needs a GPU: see `capstone measure --bundle`")
    elif on_cpu and "not supported in interpreter mode" in message:
        answer.update(kind="not_judgeable", hint="Triton's interpreter lacks this: a GPU has it, see "
                                                 "`capstone measure --bundle`")
    elif on_cpu and re.search("cuda|nvidia|nvcc" if interpreted else "cuda|nvidia|triton|nvcc", message,
                              re.IGNORECASE):
        answer.update(kind="not_judgeable", hint="it needs a GPU: see `capstone measure --bundle`")
    elif "not implemented for 'Half'" in message or "not implemented for 'BFloat16'" in message:
        answer.update(kind="not_judgeable", hint="this PyTorch lacks the operator in this type on the CPU: "
                                                 "use a GPU, or a newer PyTorch")
    elif isinstance(problem, ModuleNotFoundError):
        answer.setdefault("hint", f"install it for {sys.executable}, or do not use it")
    elif "device-side assert" in message or "illegal memory access" in message:
        answer.update(kind="undefined_behaviour", hint="an index leaves its tensor: run compute-sanitizer "
                                                       "on it")
    answer["traceback"] = trace_of(problem)
    return answer


def failure_of_extension(problem, answer):
    """An extension of the emulator did not build, or one of its kernels failed: what was said of it."""
    lines = problem.said.splitlines()
    kind = "undefined_behaviour"
    if type(problem).__name__ == "BuildFailure":
        kind = "not_judgeable" if problem.not_judgeable else "build"
        lines = [line for line in lines if "error:" in line] or lines
    elif "not judgeable on the CPU" in problem.said:
        kind = "not_judgeable"
    hints = [line.split("hint:", 1)[1].strip() for line in problem.said.splitlines() if "hint:" in line]
    answer.update(kind=kind, message=(lines or ["the extension failed"])[0].removeprefix("capstone: "),
                  hint=hints[0] if hints else "", traceback=problem.said[-LONGEST_TRACE:])
    return answer


def uses_triton(source):
    with open(source, encoding="utf-8", errors="replace") as text:
        return bool(re.search(r"^\s*(?:import|from)\s+triton\b", text.read(), re.MULTILINE))


def import_interpreter():
    """What runs Triton kernels on a CPU. It has to be imported before the candidate imports Triton."""
    os.environ["TRITON_INTERPRET"] = "1"
    try:
        import numpy  # noqa: F401
        import triton  # noqa: F401
    except Exception as problem:
        raise Refusal("environment", "Triton kernels run on a CPU in Triton's interpreter, which cannot be "
                                     f"imported: {one_line(problem)}",
                      f"install triton and numpy for {sys.executable}, or give --python another python3 "
                      "(docs/how-to/pytorch.md)", problem) from None
    import interpreted

    return interpreted


def import_torch():
    """PyTorch, and our modules that need it."""
    try:
        import torch
    except Exception as problem:  # a missing shared library raises OSError
        raise Refusal("environment", f"PyTorch cannot be imported: {one_line(problem)}",
                      f"repair it for {sys.executable}, or {ANOTHER}", problem) from None
    import clock  # noqa: F401
    import memory  # noqa: F401
    import model  # noqa: F401

    return torch


def hide_our_files():
    """A candidate's imports must not find them."""
    if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]


class Worker:
    def __init__(self, options):
        self._options = options
        self._files = [path for path in (options.candidate, options.reference) if path]
        self._subject = None
        self._looked_at_operators = False
        self._watch = None  # what a candidate's Triton kernels do on a CPU
        self._triton = options.device == "cpu" and options.candidate and uses_triton(options.candidate)
        self._findings = ()  # exceptions that are findings
        self._ready = {}  # request → (callable, function that updates its parameters, prepare or None, inputs)

    def hello(self):
        torch = import_torch()
        import clock
        import memory
        from model import ARMS

        self._torch = torch
        if self._triton:
            self._triton = import_interpreter()
        hide_our_files()
        torch.set_grad_enabled(False)
        if self._options.device == "cuda":
            if not torch.cuda.is_available():
                built = (f"is built for CUDA {torch.version.cuda}" if torch.version.cuda
                         else "is a build without CUDA")
                raise Refusal("environment", f"PyTorch {torch.__version__} sees no GPU: it {built}",
                              "install a build for this driver (https://pytorch.org/get-started), "
                              f"or {ANOTHER}")
            try:
                driver = clock.Driver()
            except Exception as problem:
                built = f", a build for CUDA {torch.version.cuda}," if torch.version.cuda else ""
                raise Refusal("environment", f"PyTorch {torch.__version__}{built} cannot use this GPU: "
                                             f"{one_line(problem)}",
                              "install a build for this GPU and its driver "
                              f"(https://pytorch.org/get-started), or {ANOTHER}", problem) from None
            self._arena, self._clock = memory.DeviceArena(driver), clock.DeviceClock(driver)
            self._expected = memory.DeviceArena(driver, memory.DeviceArena.EXPECTED)
        else:
            torch.set_num_threads(min(4, os.cpu_count() or 1))
            self._arena, self._expected, self._clock = (
                memory.HostArena(), memory.HostArena(), clock.HostClock())
        allow_tf32 = self._options.precision != "fp32"
        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        torch.backends.cudnn.allow_tf32 = allow_tf32
        return {"ok": True, "protocol": 1, "backend": "torch", "torch": torch.__version__,
                "cuda": torch.version.cuda or "",
                "python": sys.version.split()[0],
                "label": self._label("ModelNew" if self._options.candidate
                                     else ARMS.get(self._options.arm, [self._options.arm])[-1])}

    def _label(self, what):
        tf32 = self._torch.backends.cuda.matmul.allow_tf32
        return f"PyTorch {self._torch.__version__} {what}, TF32 {'on' if tf32 else 'off'}"

    def load(self):
        from model import NoSuchArm, Subject

        answer = {"ok": True}
        if self._triton:
            self._watch, answer["triton"] = self._triton.install(self._files)
            self._findings = self._triton.Finding
        if self._options.extensions:
            specification = importlib.util.spec_from_file_location("capstone_torch", self._options.extensions)
            extensions = importlib.util.module_from_spec(specification)
            specification.loader.exec_module(extensions)
            extensions.install()
        try:
            self._subject = Subject(self._options.reference, self._options.candidate, self._options.arm,
                                    self._options.device)
        except NoSuchArm as problem:
            raise Refusal("no_such_arm", str(problem)) from None
        except Exception as problem:
            return failure_of(problem, self._files, self._options.device == "cpu",
                              bool(self._options.candidate), kind="build",
                              interpreted=self._watch is not None)
        gc.freeze()  # loaded objects stay; later collections skip them
        if self._subject.library:
            answer["label"] = self._label(self._subject.library)
        if self._options.candidate:
            answer["languages"] = languages_of(self._options.candidate)
        return answer

    def arena(self, request, descriptor):
        before = self._arena.place
        self._arena.map(descriptor, request["bytes"])
        if self._options.candidate or self._arena.place is None or self._arena.place != before:
            self._ready.clear()  # otherwise new memory has the old addresses, and compiled code for them is
                                 # still valid
        return {"ok": True}

    def self_check(self, request):
        """The maximum difference of the reference from itself in float64, in units of the tolerance."""
        try:
            inputs, parameters = self._tensors(request["inputs"]), self._parameters(request)
            exact = as_list(self._subject.in_double(request["sizes"], inputs, parameters))
            call, refresh, _, _ = self._prepared(request)
            refresh()
            worst = 0.0
            for value, got in zip(exact, as_list(call(*inputs))):
                worst = max(worst, self._disagreement(value.double(), got, request))
            return {"ok": True, "worst": worst}
        finally:
            if self._options.device == "cuda":
                self._torch.cuda.empty_cache()

    def _disagreement(self, value, got, request):
        torch = self._torch
        # equal after overflow of the type, or both NaN
        alike = (got == value.to(got.dtype)) | (torch.isnan(got) & torch.isnan(value))
        got = got.double()
        size = value.abs()
        typical = torch.where(torch.isfinite(size), size, torch.zeros_like(size)).square().mean().sqrt()
        allowed = request["atol"] * torch.maximum(size, typical) + request["rtol"] * size
        off = (got - value).abs() / allowed
        off[alike] = 0
        return float(off.nan_to_num_(FARTHEST, FARTHEST).max()) if off.numel() else 0.0

    def expected(self, request, descriptor):
        """Memory for the expected outputs; only trusted workers map it."""
        self._expected.map(descriptor, request["bytes"])
        return {"ok": True}

    def _prepared(self, request):
        key = repr((request["sizes"], request["inputs"], request["parameters"]))
        if key not in self._ready:
            self._ready.clear()

            call, refresh, prepare = self._subject.at(request["sizes"], self._parameters(request))
            self._ready[key] = call, refresh, prepare, self._tensors(request["inputs"])
        return self._ready[key]

    def _tensors(self, places):
        return [self._tensor(place) for place in places]

    def _tensor(self, place):
        if "value" in place:
            return place["value"]  # a number that forward() takes
        arena = self._expected if place.get("expected") else self._arena
        tensor = arena.tensor(place["at"], place["shape"], place["dtype"])
        return tensor.view(self._torch.bool) if place["python"] == "bool" else tensor

    def _parameters(self, request):
        return [(place["python"], self._tensor(place)) for place in request["parameters"]]

    def exact(self, request):
        """The reference in float64, and each element's scale, which its error is measured by. Both as float64
        if the request says so. Also the reference's difference from it, as in self_check()."""
        torch = self._torch
        inputs, parameters = self._tensors(request["inputs"]), self._parameters(request)
        exact = as_list(self._subject.in_double(request["sizes"], inputs, parameters))
        call, refresh, _ = self._subject.at(request["sizes"], parameters)
        refresh()
        plain = as_list(call(*inputs))
        shapes = [list(tensor.shape) for tensor in exact]
        if shapes != [place["shape"] for place in request["outputs"]]:
            raise Refusal("exception", f"the reference's outputs have the shapes {shapes}, the problem says "
                                       f"{[place['shape'] for place in request['outputs']]}")
        worst = 0.0
        for value, rounded, place in zip(exact, plain, request["outputs"]):
            value = value.double()
            worst = max(worst, self._disagreement(value, rounded, request))
            finite = torch.where(torch.isfinite(value), value, torch.zeros_like(value))
            noise = torch.nan_to_num((rounded.double() - value).abs(), 0.0, 0.0, 0.0)
            # An element is as exact as the size of its neighbours allows, or as the reference's own type
            # allows: intermediate results may be larger than both.
            typical = float(finite.square().mean().sqrt())
            own = (max(NOISE_RMS * float(noise.square().mean().sqrt()), NOISE_MOST * float(noise.max()))
                   / max(request["atol"], 1e-12))
            scale = finite.abs().clamp(min=max(typical, own))
            self._arena.tensor(place["value_at"], place["shape"], "f64").copy_(value)
            self._arena.tensor(place["scale_at"], place["shape"], "f64").copy_(scale)
        return {"ok": True, "worst": worst}

    def prepare(self, request):
        """Lets the model repack its parameters, untimed; the inputs are poison. A model without prepare() has
        nothing to do."""
        _, refresh, prepare, _ = self._prepared(request)
        refresh()
        if prepare is not None:
            self._watched(request, prepare)
            if self._options.device == "cuda":
                self._torch.cuda.synchronize()
        return {"ok": True}

    def _watched(self, request, call):
        """The result of `call`, whose Triton kernels know the judge's tensors from what lies between them."""
        if self._watch is None:
            return call()
        tensors = [self._tensor(place) for kind in ("inputs", "parameters", "outputs")
                   for place in request[kind] if "at" in place]
        self._watch.judged = [(tensor.data_ptr(), tensor.data_ptr() + tensor.numel() * tensor.element_size())
                              for tensor in tensors]
        try:
            return call()
        except self._findings as finding:
            raise Refusal("undefined_behaviour", str(finding), finding.hint, place=finding.place) from None

    def run(self, request):
        call, refresh, _, inputs = self._prepared(request)
        refresh()
        result, times = self._watched(
            request, lambda: self._clock.time(lambda: call(*inputs), max(1, request.get("repeat", 1)),
                                              request.get("hide_ns", 0)))
        self._store(result, self._tensors(request["outputs"]),
                    [place["name"] for place in request["outputs"]])
        answer = {"ok": True, **times}
        if self._options.candidate and self._options.device == "cpu" and not self._looked_at_operators:
            self._looked_at_operators = True
            if operators := self._operators(lambda: call(*inputs)):
                answer["notes"] = ["library work: PyTorch's own operators computed it: " + ", ".join(operators)]
        return answer

    def _operators(self, call):
        """PyTorch's operators that `call` uses itself and that compute something, by name."""
        from torch.profiler import ProfilerActivity, profile

        with profile(activities=[ProfilerActivity.CPU]) as seen:
            call()
        names = (event.name[len("aten::"):] for event in seen.events()
                 if event.name.startswith("aten::") and event.cpu_parent is None)
        return list(dict.fromkeys(name for name in names if name not in HOUSEKEEPING))[:6]

    def kernels(self, request):
        """The names of the kernels, copies and memsets that one run puts on the GPU, as CUPTI reports them;
        untimed."""
        from torch.autograd import DeviceType
        from torch.profiler import ProfilerActivity, profile

        call, refresh, _, inputs = self._prepared(request)
        refresh()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            call(*inputs)
            self._clock.wait()
        names = dict.fromkeys(event.name[:200] for event in seen.events()
                              if event.device_type == DeviceType.CUDA)
        return {"ok": True, "kernels": list(names)[:100]}

    def _store(self, result, outputs, names):
        """PyTorch allocates its outputs itself. They are copied to the judge's memory after the clock has
        stopped."""
        results = as_list(result)
        if len(results) != len(outputs):
            raise Refusal("wrong_output", f"forward() returns {len(results)} tensors, the problem has "
                                          f"{len(outputs)} outputs")
        for got, place, name in zip(results, outputs, names):
            # A subclass could delay its computation until it is read, after the clock has stopped.
            if type(got) not in (self._torch.Tensor, self._torch.nn.Parameter):
                raise Refusal("wrong_output", f"forward() returns a {type(got).__name__} for {name}",
                              "return plain tensors: a subclass may delay its computation")
            if got.shape != place.shape:
                raise Refusal("wrong_output", f"{name} has the shape {list(got.shape)}, the problem says "
                                              f"{list(place.shape)}")
            if got.dtype != place.dtype:
                raise Refusal("wrong_output", f"{name} has the type {got.dtype}, the problem says "
                                              f"{place.dtype}")
            if got.device != place.device:
                raise Refusal("wrong_output", f"{name} is on {got.device}, its inputs were on {place.device}")
            if got.is_sparse or got.layout != self._torch.strided:
                raise Refusal("wrong_output", f"{name} is not a dense tensor", "return .to_dense()")
            place.copy_(got)
        self._clock.wait()

    def handle(self, request, descriptor):
        operation = request.get("op")
        if operation == "hello":
            return self.hello()
        if operation == "load":
            return self.load()
        if operation == "arena":
            return self.arena(request, descriptor)
        if operation == "prepare":
            return self.prepare(request)
        if operation == "run":
            return self.run(request)
        if operation == "expected":
            return self.expected(request, descriptor)
        if operation == "self_check":
            return self.self_check(request)
        if operation == "exact":
            return self.exact(request)
        if operation == "kernels":
            return self.kernels(request)
        return {"ok": False, "kind": "exception", "message": f"unknown request: {operation}"}

    def answer(self, request, descriptor):
        try:
            return self.handle(request, descriptor)
        except Exception as problem:
            return failure_of(problem, self._files, self._options.device == "cpu",
                              bool(self._options.candidate), interpreted=self._watch is not None)


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--precision", required=True)
    parser.add_argument("--reference", required=True)
    parser.add_argument("--arm", default="eager")
    parser.add_argument("--candidate", default="")
    parser.add_argument("--extensions", default="")
    return parser.parse_args(arguments)


def main(arguments, kind=Worker):
    worker = kind(options_of(arguments))
    wire = Wire()
    while True:
        request, descriptor = wire.receive()
        if request is None:
            return 0
        if request.get("op") == "quit":
            wire.send({"ok": True})
            return 0
        wire.send(worker.answer(request, descriptor))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
