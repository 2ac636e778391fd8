"""The judge's tensors as PyTorch tensors that share their memory: no copy, on the CPU and on a GPU.

An address becomes a tensor through DLPack, which every PyTorch since 1.10 reads and which does not need
NumPy.
"""

import ctypes
import mmap
import os

import torch

DTYPES = {
    "f64": "float64",
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "e8m0": "float8_e8m0fnu",
    # Packed: bytes with two elements each, the first in the low half. PyTorch has no int4x2, and its
    # float4_e2m1fn_x2 converts to nothing and is not in every version.
    "int4x2": "uint8",
    "e2m1x2": "uint8",
}
PACKED = ("int4x2", "e2m1x2")
CPU, CUDA = 1, 2  # DLPack's device types


def dtype_of(name):
    kind = getattr(torch, DTYPES[name], None)
    if kind is None:
        raise RuntimeError(f"PyTorch {torch.__version__} has no torch.{DTYPES[name]}")
    return kind


# ---- DLPack's structures


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _DataType(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", _Device),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]

_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]

_keep_memory = _Deleter(lambda managed: None)  # the memory belongs to the judge
_described = []  # descriptions that PyTorch holds pointers to


def bytes_at(address, size, device):
    """`size` bytes of memory at `address` as a tensor of uint8."""
    shape, stride = (ctypes.c_int64 * 1)(size), (ctypes.c_int64 * 1)(1)
    managed = _Managed()
    managed.tensor.data = address
    managed.tensor.device = _Device(device, 0)
    managed.tensor.ndim = 1
    managed.tensor.dtype = _DataType(1, 8, 1)  # unsigned, 8 bits
    managed.tensor.shape = shape
    managed.tensor.strides = stride
    managed.deleter = _keep_memory
    _described.append((managed, shape, stride))
    return torch.utils.dlpack.from_dlpack(_new_capsule(ctypes.addressof(managed), b"dltensor", None))


class Arena:
    """One block of memory; its tensors begin at multiples of 256 bytes."""

    def __init__(self):
        self.bytes = None
        self.place = None  # address and size, to detect a later mapping at the same place

    def tensor(self, at, shape, dtype):
        kind = dtype_of(dtype)
        if dtype in PACKED:
            shape = [*shape[:-1], shape[-1] // 2]
        count = 1
        for extent in shape:
            count *= extent
        size = count * torch.empty(0, dtype=kind).element_size()
        return self.bytes[at : at + size].view(kind).view(shape)


class HostArena(Arena):
    """A memfd that the judge created."""

    def map(self, descriptor, size):
        self.bytes = None
        self._mapping = mmap.mmap(descriptor, size)
        os.close(descriptor)
        self.bytes = bytes_at(ctypes.addressof(ctypes.c_char.from_buffer(self._mapping)), size, CPU)


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("windows", ctypes.c_void_p),
        ("flags", ctypes.c_uint8 * 8),
    ]


class _Access(ctypes.Structure):
    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


class DeviceArena(Arena):
    """Device memory that the GPU host allocates and shares by a descriptor, mapped at the address that all
    processes of the judge use."""

    ADDRESS, EXPECTED = 0x700000000000, 0x710000000000
    LEAST_RESERVED = 1 << 30  # small reservations come from a pool and ignore the requested address
    ON_DEVICE, PINNED, BY_DESCRIPTOR, READ_WRITE, RECOMMENDED = 1, 1, 1, 3, 1

    def __init__(self, driver, address=ADDRESS):
        super().__init__()
        self._driver = driver
        self._address = address
        self._mapped = None

    def map(self, descriptor, size):
        self._drop()
        call = self._driver.call
        location = _Location(self.ON_DEVICE, 0)
        properties = _Properties(self.PINNED, self.BY_DESCRIPTOR, location)
        granule, handle, address = ctypes.c_size_t(), ctypes.c_ulonglong(), ctypes.c_ulonglong()
        call("cuMemGetAllocationGranularity", ctypes.byref(granule), ctypes.byref(properties),
             self.RECOMMENDED)
        whole = -(-size // granule.value) * granule.value
        try:
            call("cuMemImportFromShareableHandle", ctypes.byref(handle), ctypes.c_void_p(descriptor),
                 self.BY_DESCRIPTOR)
        finally:
            os.close(descriptor)
        reserved = max(whole, self.LEAST_RESERVED)
        sizes = ctypes.c_size_t(whole), ctypes.c_size_t(reserved), ctypes.c_size_t(0)
        call("cuMemAddressReserve", ctypes.byref(address), sizes[1], sizes[2],
             ctypes.c_ulonglong(self._address), ctypes.c_ulonglong(0))
        call("cuMemMap", address, sizes[0], sizes[2], handle, ctypes.c_ulonglong(0))
        access = _Access(location, self.READ_WRITE)
        call("cuMemSetAccess", address, sizes[0], ctypes.byref(access), ctypes.c_size_t(1))
        self._mapped = (address, sizes[0], sizes[1], handle)
        self.place = address.value, whole
        self.bytes = bytes_at(address.value, whole, CUDA)

    def _drop(self):
        if not self._mapped:
            return
        self.bytes = None
        address, size, reserved, handle = self._mapped
        self._mapped = None
        self._driver.call("cuMemUnmap", address, size)
        self._driver.call("cuMemAddressFree", address, reserved)
        self._driver.call("cuMemRelease", handle)
