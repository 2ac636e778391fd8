"""What an exception is about. Needs no PyTorch: it may be what failed."""

import re


def memory_that_ran_out(problem):
    """"GPU memory" or "memory", where that is what an exception is about."""
    message = str(problem)
    if re.search("(CUDA|HIP).*out of memory|CU(BLAS|DNN)_STATUS_ALLOC_FAILED", message) or type(problem).__name__ == "OutOfMemoryError":
        return "GPU memory"
    return "memory" if isinstance(problem, MemoryError) or "can't allocate memory" in message or "out of memory" in message.lower() else None
