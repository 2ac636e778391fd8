"""Measures how long a call takes: with events of the CUDA driver, or with the processor's clock.

The driver is called through ctypes with functions that are looked up before anything else is loaded, so that
replacing methods of torch.cuda has no effect here. A process's times are still unverified claims: the judge
has its own clock, too.
"""

import ctypes
import time

import torch


class Driver:
    """The CUDA driver; the context belongs to PyTorch."""

    def __init__(self):
        torch.cuda.init()
        torch.zeros(1, device="cuda")  # creates the context and makes it current
        self._library = ctypes.CDLL("libcuda.so.1")
        self._functions = {}

    def call(self, name, *arguments):
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._library, name)
        code = function(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'error %d' % code).decode()}")


class DeviceClock:
    CLOCK_RATE = 13  # CU_DEVICE_ATTRIBUTE_CLOCK_RATE [kHz]

    def __init__(self, driver):
        self._driver = driver
        self._begin, self._end = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (self._begin, self._end):
            driver.call("cuEventCreate", ctypes.byref(event), 0)
        rate = ctypes.c_int()
        driver.call("cuDeviceGetAttribute", ctypes.byref(rate), self.CLOCK_RATE, 0)
        self._cycles_per_ns = (rate.value or 1_500_000) / 1e6
        self._spin = torch.cuda._sleep
        self._stream_of = torch.cuda.current_stream
        self._now = time.perf_counter_ns
        for name in ("cuEventRecord", "cuCtxSynchronize", "cuEventElapsedTime"):
            getattr(driver._library, name)

    def wait(self):
        """Waits for the whole device."""
        self._driver.call("cuCtxSynchronize")

    def time(self, call, repeat, hide_ns):
        """The last result of `call`, with the times of one call: by events, of the host inside the call, and
        from the first call to the end of a wait for the whole device."""
        stream = ctypes.c_void_p(self._stream_of().cuda_stream)
        record = self._driver.call
        record("cuCtxSynchronize")
        if hide_ns > 0:
            self._spin(int(hide_ns * self._cycles_per_ns))
        record("cuEventRecord", self._begin, stream)
        begun = self._now()
        for _ in range(repeat):
            result = call()
        launched = self._now()
        record("cuEventRecord", self._end, stream)
        record("cuCtxSynchronize")
        ended = self._now()
        ms = ctypes.c_float()
        record("cuEventElapsedTime", ctypes.byref(ms), self._begin, self._end)
        times = {"ms": ms.value / repeat, "launch_ns": (launched - begun) / repeat,
                 "host_ms": (ended - begun) / 1e6 / repeat}
        return result, times


class HostClock:
    def wait(self):
        pass

    def time(self, call, repeat, hide_ns):
        begun = time.perf_counter_ns()
        for _ in range(repeat):
            result = call()
        ms = max((time.perf_counter_ns() - begun) / 1e6 / repeat, 1e-6)
        return result, {"ms": ms, "launch_ns": ms * 1e6, "host_ms": ms}
