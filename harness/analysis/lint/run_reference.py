"""Runs a problem's reference.py in float64 on the CPU. Called by lint: run_reference.py REQUESTS.json

The file holds a list with one request for each set of sizes. Tensors are exchanged as raw files: float64,
int64 for integers, bytes for packed types. Exit code 3: PyTorch cannot be imported.
"""

import importlib.util
import json
import sys

sys.dont_write_bytecode = True  # do not write into the problem's folder

try:
    import torch
except Exception as problem:  # a missing shared library raises OSError
    print(problem, file=sys.stderr)
    sys.exit(3)


def load(tensor):
    if "value" in tensor:  # a scalar that forward() takes
        return tensor["value"]
    with open(tensor["file"], "rb") as file:
        data = bytearray(file.read())
    kind = getattr(torch, tensor["kind"])
    loaded = torch.frombuffer(data, dtype=kind).reshape(tensor["shape"])
    return loaded.bool() if tensor["python"] == "bool" else loaded


def attribute(model, path):
    for name in path.split("."):
        model = getattr(model, name)
    return model


def run(reference, request):
    for symbol, value in request["sizes"].items():
        setattr(reference, symbol, value)
    model = reference.Model(*reference.get_init_inputs()).double()
    with torch.no_grad():
        for parameter in request["parameters"]:
            name, tensor = parameter["python"], load(parameter)
            if name.endswith(".T"):
                name, tensor = name[:-2], tensor.t()
            attribute(model, name).copy_(tensor)
        results = model(*[load(tensor) for tensor in request["inputs"]])
    if not isinstance(results, (tuple, list)):
        results = [results]
    if len(results) != len(request["outputs"]):
        sys.exit(f"forward() returns {len(results)} tensors, "
                 f"the signature has {len(request['outputs'])} outputs")
    for result, output in zip(results, request["outputs"]):
        if list(result.shape) != output["shape"]:
            sys.exit(f"{output['name']} has the shape {list(result.shape)}, "
                     f"the signature says {output['shape']}")
        with open(output["file"], "wb") as file:
            file.write(bytes(result.double().contiguous().reshape(-1).view(torch.uint8).tolist()))


def main(requests):
    spec = importlib.util.spec_from_file_location("reference", requests[0]["reference"])
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    for request in requests:
        try:
            run(reference, request)
        except Exception as problem:
            sizes = ", ".join(f"{symbol}={value}" for symbol, value in request["sizes"].items())
            sys.exit(f"at {sizes}: {type(problem).__name__}: {problem}")


with open(sys.argv[1]) as file:
    main(json.load(file))
