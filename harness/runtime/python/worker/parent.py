"""parent.py --device cpu|cuda [--compile]

Imports PyTorch as soon as it starts. Then it forks a worker (worker.py) for each request, which needs no
import; or it becomes a worker itself. Started by capstone; uses descriptor 3 (protocol.md). Only for trusted
arms: children share what the parent has loaded.

A child makes its own CUDA context. That is possible only as long as the parent has not initialised CUDA. And
a copy of a process with several threads lacks all threads but one. Both are checked before each fork.
"""

import argparse
import ctypes
import gc
import importlib
import os
import signal
import sys

# While the parent imports: no threads of NumPy's BLAS, no processes of Inductor, no CUDA for a look at
# devices.
os.environ.update({"OPENBLAS_NUM_THREADS": "1", "TORCH_WARM_POOL": "0", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"})

import worker  # noqa: E402
from wire import DESCRIPTOR, Wire  # noqa: E402

# What the first call of a compiled module imports; this takes longer than the import of PyTorch itself. Some of
# it starts threads, so a process that has imported it does not fork any more: it becomes the worker.
FOR_COMPILE = ["torch._dynamo", "torch._inductor.compile_fx",
               "torch._inductor.codegen.cuda_combined_scheduling", "triton.backends.nvidia.compiler"]
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
CUDA_ERROR_NOT_INITIALIZED = 3


def cuda_is_initialised():
    try:
        driver = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD)
    except OSError:
        return False  # the library is not loaded
    return driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int())) != CUDA_ERROR_NOT_INITIALIZED


def why_not_fork():
    if len(os.listdir("/proc/self/task")) > 1:
        return "the import of PyTorch started threads"
    if cuda_is_initialised():
        return "the import of PyTorch initialised CUDA"
    return None


def import_quietly(name):
    try:
        importlib.import_module(name)
    except Exception:  # another version of PyTorch: the worker imports what it needs
        pass


def compiles(arguments):
    return worker.options_of(arguments).arm.startswith("compile")


def start_compilers():
    """What the import of Inductor starts in a process that will not fork."""
    inductor = sys.modules.get("torch._inductor.async_compile")
    warm_pool = getattr(getattr(inductor, "AsyncCompile", None), "warm_pool", None)
    if warm_pool:
        warm_pool()


class Parent:
    def __init__(self, options):
        self._wire = Wire()
        self._pid = os.getpid()
        try:
            torch = worker.import_torch()
            self._hello = {"ok": True, "protocol": 1, "backend": "torch", "torch": torch.__version__}
        except worker.Refusal as problem:
            self._hello = worker.failure_of(problem, [], False, False)
            return
        for name in FOR_COMPILE if options.compile else []:
            import_quietly(name)

    def serve(self):
        """Answers requests. Returns the arguments of a worker: in a child, or in this process if it is to become
        one. None at the end of the parent."""
        while True:
            request, descriptor = self._wire.receive()
            if request is None:
                return None
            operation = request.get("op")
            if operation == "hello":
                self._wire.send(self._hello)
            elif operation == "fork":
                arguments = self.fork(request, descriptor)
                if arguments is not None:
                    return arguments
            elif operation == "become":
                self._forget_own_environment()
                self._wire.send({"ok": True})
                self._wire.forget()
                return request["arguments"]
            elif operation == "reap":
                self._wire.send({"ok": True, "status": os.waitpid(request["pid"], 0)[1]})
            else:
                self._wire.send({"ok": False, "kind": "exception",
                                 "message": f"unknown request: {operation}"})

    def fork(self, request, channel):
        for pid in request["ended"]:
            os.waitpid(pid, 0)
        if because := why_not_fork():
            os.close(channel)
            self._wire.send({"ok": False, "kind": "cannot_fork", "message": because})
            return None
        gc.freeze()  # children share these objects: a collection would copy them
        sys.stdout.flush()
        sys.stderr.flush()
        output, printed = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(output)
            self._become_worker(channel, printed)
            return request["arguments"]
        os.close(printed)
        os.close(channel)
        try:
            os.setpgid(pid, pid)  # the child also calls it; the first call wins
        except OSError:
            pass  # it has ended
        self._wire.send({"ok": True, "pid": pid}, output)
        os.close(output)
        return None

    def _become_worker(self, channel, printed):
        os.setpgid(0, 0)
        libc = ctypes.CDLL(None)
        libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))
        if os.getppid() != self._pid:
            os._exit(127)  # the parent died before that took effect
        libc.prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1))
        self._wire.forget()
        os.dup2(channel, DESCRIPTOR, inheritable=False)  # the parent's channel ends here
        for stream in (1, 2):
            os.dup2(printed, stream)
        os.close(channel)
        os.close(printed)
        self._forget_own_environment()

    @staticmethod
    def _forget_own_environment():
        for name in ("TORCH_WARM_POOL", "PYTORCH_NVML_BASED_CUDA_CHECK"):
            os.environ.pop(name, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], required=True)
    parser.add_argument("--compile", action="store_true", help="import what torch.compile needs, too")
    arguments = Parent(parser.parse_args()).serve()
    if arguments is None:
        return 0
    if compiles(arguments):
        start_compilers()
    return worker.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
