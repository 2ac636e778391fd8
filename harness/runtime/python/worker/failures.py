"""Classifies exceptions. Does not need PyTorch, because PyTorch may be what failed."""

import re


def memory_that_ran_out(problem):
    """"GPU memory" or "memory" if the exception says that it ran out, else None."""
    message = str(problem)
    if re.search("(CUDA|HIP).*out of "
                 "memory|CU(BLAS|DNN)_STATUS_ALLOC_FAILED", message) or (
            type(problem).__name__ == "OutOfMemoryError"):
        return "GPU memory"
    return "memory" if (isinstance(problem, MemoryError) or "can't allocate memory" in message
                        or "out of memory" in message.lower()) else None
