"""python_worker.py [PROBLEM …]: tests the Python worker on this machine's GPU, without the judge.

Shares device memory as the GPU host does and runs each problem's eager arm at its `measure` size with normal
values. Compares the median of its cold times with those of torch.utils.benchmark and, if Triton is installed,
do_bench for the same module. Exit code 1: something failed, or two medians over 100 µs differ by more than 5
%.
"""

import ast
import ctypes
import json
import os
import re
import socket
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORKER = os.path.join(ROOT, "harness", "runtime", "python", "worker")
sys.path.insert(0, WORKER)

import clock  # noqa: E402
import constants  # noqa: E402
import memory  # noqa: E402
import model as modules  # noqa: E402
import torch  # noqa: E402


class Worker:
    def __init__(self, reference, precision, arm):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        argv = [sys.executable, os.path.join(WORKER, "worker.py"), "--device", "cuda",
                "--precision", precision, "--reference", reference, "--arm", arm]
        # Bash puts the socket at descriptor 3.
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{theirs.fileno()}', "bash", *argv],
            pass_fds=[theirs.fileno()])
        theirs.close()

    def ask(self, request, descriptor=None):
        data = json.dumps(request).encode()
        if descriptor is None:
            self._socket.send(data)
        else:
            socket.send_fds(self._socket, [data], [descriptor])
        answer = json.loads(self._socket.recv(1 << 16) or b'{"ok":false,"message":"the worker died"}')
        if not answer["ok"]:
            raise RuntimeError(answer.get("message", "") + "\n" + answer.get("traceback", ""))
        return answer

    def end(self):
        self.ask({"op": "quit"})
        self._process.wait()


def shared_memory(driver, size):
    """A descriptor of device memory, as the GPU host creates it, and the same memory as a tensor."""
    arena = memory.DeviceArena(driver)
    location = memory._Location(arena.ON_DEVICE, 0)
    properties = memory._Properties(arena.PINNED, arena.BY_DESCRIPTOR, location)
    granule, handle, descriptor = ctypes.c_size_t(), ctypes.c_ulonglong(), ctypes.c_int()
    driver.call("cuMemGetAllocationGranularity", ctypes.byref(granule), ctypes.byref(properties),
                arena.RECOMMENDED)
    whole = -(-size // granule.value) * granule.value
    driver.call("cuMemCreate", ctypes.byref(handle), ctypes.c_size_t(whole), ctypes.byref(properties),
                ctypes.c_ulonglong(0))
    driver.call("cuMemExportToShareableHandle", ctypes.byref(descriptor), handle, arena.BY_DESCRIPTOR,
                ctypes.c_ulonglong(0))
    arena.map(os.dup(descriptor.value), size)
    driver.call("cuMemRelease", handle)
    return descriptor.value, arena


NAMES = {getattr(torch, kind): name for name, kind in memory.DTYPES.items() if hasattr(torch, kind)}


def places_of(folder, device="cuda"):
    """A request for the problem's own sizes, which are the constants of reference.py, and the size of its
    tensors in bytes."""
    path = os.path.join(folder, "reference.py")
    with open(path, encoding="utf-8") as text:
        reference = constants.module_at(ast.parse(text.read(), path), path, {})
    sizes = {name: value for name, value in vars(reference).items() if type(value) is int}
    run = reference.Model(*reference.get_init_inputs()).to(device)
    parameters = dict(run.named_parameters())
    inputs = [tensor.to(device) for tensor in reference.get_inputs()]
    with torch.no_grad():
        outputs = run(*inputs)
    outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
    call = {"op": "run", "sizes": sizes, "inputs": [], "parameters": [], "outputs": []}
    at = 0
    for kind, named in (("inputs", enumerate(inputs)), ("parameters", parameters.items()),
                        ("outputs", enumerate(outputs))):
        for name, tensor in named:
            place = {"name": f"{kind}-{name}", "at": at, "shape": list(tensor.shape),
                     "dtype": NAMES[tensor.dtype]}
            call[kind].append({**place, "python": name if kind == "parameters" else ""})
            at += -(-tensor.numel() * tensor.element_size() // 256) * 256
    return call, at


def examine(driver, name):
    folder = os.path.join(ROOT, "problems", name)
    with open(os.path.join(folder, "problem.yaml")) as file:
        precision = re.search(r"^precision: *(\w+)", file.read(), re.MULTILINE).group(1)
    call, size = places_of(folder)
    sizes = call["sizes"]
    descriptor, arena = shared_memory(driver, size)
    tensors = {}
    for place in call["inputs"] + call["parameters"] + call["outputs"]:
        tensor = tensors[place["name"]] = arena.tensor(place["at"], place["shape"], place["dtype"])
        if tensor.is_floating_point():
            tensor.normal_()
        else:
            tensor.random_(0, 200)
    torch.cuda.synchronize()
    worker = Worker(os.path.join(folder, "reference.py"), precision, "eager")
    try:
        label = worker.ask({"op": "hello"})["label"]
        worker.ask({"op": "load"})
        worker.ask({"op": "arena", "bytes": size}, descriptor)
        flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
        times = []
        launch = 0.0
        for i in range(40):
            flush.zero_()
            torch.cuda.synchronize()
            answer = worker.ask({**call, "hide_ns": int(1.5 * launch + 5000)})
            launch = answer["launch_ns"]
            if i >= 10:
                times.append(answer["ms"])
        got = [tensors[place["name"]].clone() for place in call["outputs"]]
        worker.end()
    finally:
        os.close(descriptor)
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    reference = modules.Subject(os.path.join(folder, "reference.py"), "", "eager", "cuda")
    run, _ = reference.at(sizes, [(place["python"], tensors[place["name"]]) for place in call["parameters"]])
    inputs = [tensors[place["name"]] for place in call["inputs"]]
    expected = run(*inputs)
    expected = list(expected) if isinstance(expected, (tuple, list)) else [expected]
    same = all(torch.equal(a, b) for a, b in zip(got, expected))
    import torch.utils.benchmark as benchmark

    timer = benchmark.Timer("run(*inputs)", globals={"run": run, "inputs": inputs}).blocked_autorange(
        min_run_time=0.5).median * 1e3
    try:
        from triton.testing import do_bench

        cold = do_bench(lambda: run(*inputs), return_mode="median")
    except ImportError:
        cold = float("nan")
    ours = statistics.median(times)
    agree = ours < 0.1 or not abs(ours / cold - 1) > 0.05
    print(f"{name:28} {label}: worker {ours:.4f} ms, do_bench {cold:.4f} ms, "
          f"torch.utils.benchmark {timer:.4f} ms (warm), launch {launch / 1e3:.0f} us, "
          f"outputs {'the same bits' if same else 'DIFFER'}{'' if agree else '  MORE THAN 5 % APART'}",
          flush=True)
    return same and agree


def main():
    driver = clock.Driver()
    well = True
    for name in sys.argv[1:] or ["bias_gelu_layernorm", "sgemm", "conv_bias_scale_relu"]:
        try:
            well &= examine(driver, name)
        except Exception as problem:
            well = False
            print(f"{name:28} FAILED: {problem}", flush=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
