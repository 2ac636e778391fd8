"""The parameters of launch(): a file's inputs, its model's state and its outputs, with names that are valid
in C++."""

import inspect
import re

import torch

from run import Refused
from values import drawn_as, spread

DTYPES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.int32: "i32",
          torch.int64: "i64", torch.uint8: "u8", torch.bool: "u8"}
RESERVED = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const",
    "constexpr", "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export",
    "extern", "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable",
    "namespace", "new", "not", "nullptr", "operator", "or", "private", "protected", "public", "register",
    "requires", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template", "this",
    "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual",
    "void", "volatile", "wchar_t", "while", "xor", "size_t", "int32_t", "int64_t", "uint8_t", "launch",
    "prepare", "prepared", "prepared_bytes", "stream", "workspace", "workspace_bytes", "slots", "threadIdx",
    "blockIdx", "blockDim", "gridDim", "warpSize", "cudaStream_t", "main", "min", "max", "abs", "sqrt",
    "log2", "floor", "ceil", "ceil_div", "round_up",
}


class Names:
    def __init__(self, taken):
        self._taken = set(taken) | RESERVED

    def fresh(self, wanted):
        wanted = re.sub(r"\W", "_", wanted)[-36:].lstrip("_0123456789") or "t"
        name, n = wanted, 1
        while name in self._taken:
            n += 1
            name = f"{wanted}_{n}"
        self._taken.add(name)
        return name


def argument_names(model, count):
    try:
        names = [p.name for p in inspect.signature(model.forward).parameters.values()
                 if p.kind in (p.POSITIONAL_OR_KEYWORD, p.POSITIONAL_ONLY)]
    except (TypeError, ValueError):
        names = []
    return [names[i] if i < len(names) else f"x{i}" for i in range(count)]


def signature_of(run, sizes, state):
    """The parameters of launch() in order: inputs as forward() takes them, the model's state, outputs.
    `state`: tensors whose spread is used for the parameters, if they differ from those of the run."""
    names = Names(sizes.symbols)
    signature, notes = [], []
    for i, (value, wanted) in enumerate(zip(run.inputs, argument_names(run.model, len(run.inputs)))):
        name = names.fresh(wanted)
        if isinstance(value, torch.Tensor):
            dtype = type_of(value, f"the input {wanted}")
            init, note = drawn_as(value, run.draws)
            if note:
                notes.append(f"{name}: {note}")
            entry = {"name": name, "role": "input", "dtype": dtype, "shape": sizes.shapes[f"in{i}"],
                     "init": init}
            if value.dtype == torch.bool:
                entry["python"] = "bool"
            signature.append(entry)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            signature.append({"name": name, "role": "scalar",
                              "dtype": "f32" if isinstance(value, float) else "i64",
                              "value": repr(value), "python": "forward"})
        else:
            raise Refused(f"get_inputs() gives a {type(value).__name__} for {wanted}: only tensors and "
                          "numbers can be judged")
    for path, tensor in run.state().items():
        dtype = type_of(tensor, f"the parameter {path}")
        signature.append({"name": names.fresh(path.replace(".", "_")), "role": "parameter", "dtype": dtype,
                          "shape": sizes.shapes["p." + path],
                          "init": spread(state.get(path, tensor)), "python": path})
    for i, value in enumerate(run.outputs):
        if not isinstance(value, torch.Tensor):
            raise Refused(f"forward() returns a {type(value).__name__} among its outputs: only tensors can "
                          "be judged")
        if value.dtype == torch.bool:
            raise Refused("forward() returns Boolean values (torch.bool): only numbers can be judged")
        signature.append({"name": names.fresh("y" if len(run.outputs) == 1 else f"y{i}"), "role": "output",
                          "dtype": type_of(value, "an output"), "shape": sizes.shapes[f"out{i}"]})
    return signature, notes


def type_of(tensor, what):
    if tensor.dtype not in DTYPES:
        raise Refused(f"{what} has the type {tensor.dtype}, which cannot be judged")
    return DTYPES[tensor.dtype]
