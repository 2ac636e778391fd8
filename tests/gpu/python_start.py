"""python_start.py [--device cpu] [--arms eager,compile] [PROBLEM]: where the time goes until a Python worker
has run for the first time.

Starts each arm as a process and as a fork of the parent (harness/runtime/python/worker/parent.py), twice
each, and prints what each step took. Then takes a worker's start apart, in a process without the judge. Exit
code 1: the parent refused to fork, a step failed, or a forked eager and one in a process of its own disagree.
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import time

import python_worker
from python_worker import ROOT, WORKER, torch

STEPS = r"""
import os, sys, time
sys.path.insert(0, sys.argv[1])
begun = time.perf_counter()
def step(what):
    global begun
    now = time.perf_counter()
    print(f"  {what:52} {now - begun:7.3f} s", flush=True)
    begun = time.perf_counter()
import parent
step("our own modules")
import torch
step("import torch")
if "--compile" in sys.argv:
    for name in parent.FOR_COMPILE:
        parent.import_quietly(name)
        step("import " + name)
print(f"  what speaks against a fork now: {parent.why_not_fork() or 'nothing'}")
torch.set_grad_enabled(False)
device = sys.argv[2]
if device == "cuda":
    torch.cuda.is_available()
    step("torch.cuda.is_available()")
    torch.cuda.init()
    step("torch.cuda.init()")
    torch.empty(1, device="cuda")
    step("torch.empty(1): the context")
    torch.zeros(1, device="cuda")
    step("torch.zeros(1): the first kernel")
    import clock
    clock.DeviceClock(clock.Driver())
    step("events, the clock rate")
model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Softmax(-1)).to(device)
x = torch.randn(256, 256, device=device)
model(x).sum().item()
step("a first matrix product (cuBLAS) and softmax")
if "--compile" in sys.argv:
    known = set(sys.modules)
    compiled = torch.compile(torch.nn.Softmax(-1), dynamic=False)
    compiled(x).sum().item()
    step("torch.compile's first call")
    late = sorted(set(sys.modules) - known)
    print(f"  modules it imported all the same: {len(late)}: {' '.join(late)[:1500]}")
"""


class Process:
    """A process with its channel at descriptor 3."""

    def __init__(self, argv):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket = ours
        # Bash puts the socket at descriptor 3.
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", f'exec "$@" 3<&{theirs.fileno()}', "bash", sys.executable, *argv],
            pass_fds=[theirs.fileno()])
        theirs.close()

    def end(self):
        self.socket.close()
        self._process.wait()


class Became(Process):
    """The process of a parent that has imported what torch.compile needs and goes on as the worker itself."""

    def __init__(self, device, arguments):
        super().__init__([os.path.join(WORKER, "parent.py"), "--device", device, "--compile"])
        ask(self.socket, {"op": "hello"})
        ask(self.socket, {"op": "become", "arguments": arguments})


class Forked:
    def __init__(self, parent, arguments):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        answer, received = ask(parent.socket, {"op": "fork", "arguments": arguments, "ended": []},
                               theirs.fileno())
        theirs.close()
        self._parent, self._pid, self._output = parent, answer["pid"], received[0]

    def end(self):
        self.socket.close()
        ask(self._parent.socket, {"op": "reap", "pid": self._pid})
        os.close(self._output)


def ask(channel, request, descriptor=None):
    data = json.dumps(request).encode()
    socket.send_fds(channel, [data], [] if descriptor is None else [descriptor])
    data, received, _, _ = socket.recv_fds(channel, 1 << 16, 1)
    answer = json.loads(data or b'{"ok": false, "message": "the process died"}')
    if not answer["ok"]:
        raise RuntimeError(answer.get("message", "") + "\n" + answer.get("traceback", ""))
    return answer, received


def memory_of(device, call, size):
    """A descriptor of memory that holds the tensors of `call`, and the tensors of its outputs."""
    if device == "cuda":
        descriptor, arena = python_worker.shared_memory(python_worker.clock.Driver(), size)
    else:
        descriptor = os.memfd_create("tensors")
        os.ftruncate(descriptor, size)
        arena = python_worker.memory.HostArena()
        arena.map(os.dup(descriptor), size)
    tensors = {place["name"]: arena.tensor(place["at"], place["shape"], place["dtype"])
               for kind in ("inputs", "parameters", "outputs") for place in call[kind]}
    for tensor in tensors.values():
        if tensor.is_floating_point():
            tensor.normal_()
    if device == "cuda":
        torch.cuda.synchronize()
    return descriptor, arena, [tensors[place["name"]] for place in call["outputs"]]


def timed(what, action):
    begun = time.perf_counter()
    result = action()
    print(f"    {what:50} {time.perf_counter() - begun:7.3f} s", flush=True)
    return result


def first_run(start, call, size, descriptor, outputs):
    """The outputs of a worker's first run."""
    begun = time.perf_counter()
    worker = timed("start, fork", start)
    timed("hello (import, CUDA context)", lambda: ask(worker.socket, {"op": "hello"}))
    timed("load reference.py", lambda: ask(worker.socket, {"op": "load"}))
    timed("map the tensors",
          lambda: ask(worker.socket, {"op": "arena", "bytes": size}, descriptor))
    timed("first run", lambda: ask(worker.socket, call))
    timed("second run", lambda: ask(worker.socket, call))
    print(f"    all                                                {time.perf_counter() - begun:7.3f} s")
    results = [tensor.clone() for tensor in outputs]
    timed("end", worker.end)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda")
    parser.add_argument("--arms", default="eager,compile")
    parser.add_argument("problem", nargs="?", default="softmax")
    options = parser.parse_args()
    arms = options.arms.split(",")
    folder = os.path.join(ROOT, "problems", options.problem)
    with open(os.path.join(folder, "problem.yaml")) as file:
        precision = re.search(r"^precision: *(\w+)", file.read(), re.MULTILINE).group(1)
    torch.set_grad_enabled(False)
    call, size = python_worker.places_of(folder, options.device)
    descriptor, _arena, outputs = memory_of(options.device, call, size)
    compiles = ["--compile"] if any(arm.startswith("compile") for arm in arms) else []
    print(f"PyTorch {torch.__version__}, {options.problem} on {options.device}")
    parent = Process([os.path.join(WORKER, "parent.py"), "--device", options.device])
    print("  the parent")
    timed("import of PyTorch", lambda: ask(parent.socket, {"op": "hello"}))
    well = True
    for arm in arms:
        arguments = ["--device", options.device, "--precision", precision,
                     "--reference", os.path.join(folder, "reference.py"), "--arm", arm]
        results = []
        ways = [("a process", lambda: Process([os.path.join(WORKER, "worker.py"), *arguments])),
                ("a parent that imports first", lambda: Became(options.device, arguments))
                if arm.startswith("compile") else ("a fork", lambda: Forked(parent, arguments))]
        for how, start in ways:
            for number in (1, 2):
                print(f"  {arm} as {how}, number {number}")
                results.append(first_run(start, call, size, descriptor, outputs))
        if arm == "eager":
            well = all(torch.equal(one, other) for result in results[1:]
                       for one, other in zip(results[0], result))
            print(f"  outputs: {'the same bits' if well else 'DIFFER'}")
    parent.end()
    print("  a worker's start, taken apart", flush=True)
    subprocess.run([sys.executable, "-c", STEPS, WORKER, options.device, *compiles], check=True)
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
