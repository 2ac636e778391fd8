"""The modules to run: the reference's Model in one of its arms, or a candidate's ModelNew, at any sizes."""

import ast
import importlib.util
import os
import re

import torch

from constants import executed, is_size, module_at, names_set_by


class Candidate:
    """A candidate's module. Its copies of the problem's constants are sizes, too. If they change, the module
    is executed again with the new values, so that everything it derives from them at its top level (BLOCK = N
    // 4, a default argument) changes, as in the reference."""

    def __init__(self, path, reference):
        with open(path, "rb") as text:
            self._tree = ast.parse(text.read(), path)
        self._path = path
        self.module = self._executed({})
        # A constant with the same name and value belongs to the problem, whether it is a symbol or tied to
        # one.
        self._shared = {name for name in names_set_by(self._tree)
                        if is_size(getattr(self.module, name, None))
                        and getattr(self.module, name) == getattr(reference, name, None)}

    def _executed(self, values):
        specification = importlib.util.spec_from_file_location("candidate", self._path)
        return executed(self._tree, self._path, values, importlib.util.module_from_spec(specification))

    def at(self, sizes, reference):
        """Sets the module to these sizes; `reference` has them already."""
        wanted = {name: getattr(reference, name) for name in self._shared if hasattr(reference, name)}
        wanted.update((symbol, value) for symbol, value in sizes.items() if hasattr(self.module, symbol))
        if any(getattr(self.module, name) != value for name, value in wanted.items()):
            self.module = self._executed(wanted)
        for name, value in wanted.items():
            setattr(self.module, name, value)  # also if it is set by something else than an assignment
        return self.module.ModelNew


class NoSuchArm(Exception):
    """The arm cannot run with this PyTorch, or the problem does not have it."""


def _compiled(**options):
    def wrap(model):
        if not hasattr(torch, "compile"):
            raise NoSuchArm(f"PyTorch {torch.__version__} has no torch.compile")
        return torch.compile(model, dynamic=False, **options)

    return wrap


def _attention_by(backend):
    """Fixes scaled_dot_product_attention to one of its implementations."""

    def wrap(model):
        try:
            from torch.nn.attention import SDPBackend, sdpa_kernel

            chosen = getattr(SDPBackend, backend)
        except (ImportError, AttributeError):
            raise NoSuchArm(f"PyTorch {torch.__version__} has no attention by {backend}") from None

        def call(*inputs):
            with sdpa_kernel(chosen):
                return model(*inputs)

        return call

    return wrap


# Arm → (class in reference.py, transformation of an instance, text for the label).
ARMS = {
    "eager": ("Model", lambda model: model, "eager"),
    "compile": ("Model", _compiled(), "torch.compile"),
    "compile-max": ("Model", _compiled(mode="max-autotune"), "torch.compile max-autotune"),
    "sdpa-flash": ("Sdpa", _attention_by("FLASH_ATTENTION"), "scaled_dot_product_attention, FlashAttention"),
    "sdpa-cudnn": ("Sdpa", _attention_by("CUDNN_ATTENTION"), "scaled_dot_product_attention, cuDNN"),
}


LIBRARY = "lib:"


def library_of(reference, arm):
    """The class that runs a library, and what the library calls itself, with its version."""
    name = arm[len(LIBRARY):]
    kind = getattr(reference, "Library_" + name, None)
    if kind is None:
        raise NoSuchArm(f"the problem's reference.py defines no class Library_{name}, which the arm {arm} runs")
    if not callable(getattr(kind, "library", None)):
        raise NoSuchArm(f"Library_{name} has no static method library() that imports it and returns its name "
                        "and version")
    try:
        return kind, str(kind.library())
    except (ImportError, OSError) as problem:  # a missing shared library raises OSError
        raise NoSuchArm(f"not installed: {name} ({problem})") from None


RUNNING_STATISTICS = re.compile(r"(^|\.)running_(mean|var)$")


def state_of(model):
    """The tensors that the judge gives to a model: parameters, and running statistics of normalisations. Name
    → tensor."""
    state = dict(model.named_parameters())
    state.update((name, buffer) for name, buffer in model.named_buffers() if RUNNING_STATISTICS.search(name))
    return state


def owner_of(model, path):
    for name in path.split(".")[:-1]:
        model = getattr(model, name, None)
    return model


def widen(model):
    """Converts every floating-point tensor in a model to float64, also plain attributes."""
    model.double()
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point():
                setattr(module, name, value.double())
    return model


def in_double(model, inputs):
    """The results of a widened model, with the tensors that it creates during the run widened as well."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return model(*[x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x
                       for x in inputs])
    finally:
        torch.set_default_dtype(before)


def attribute(model, path):
    """For example `norm.weight` of a model; None if it does not exist."""
    for name in path.split("."):
        model = getattr(model, name, None)
    return model if isinstance(model, torch.Tensor) else None


def name_and_transpose(python):
    """The `python:` entry of problem.yaml; `weight.T` means that launch() gets the transpose."""
    return (python[:-2], True) if python.endswith(".T") else (python, False)


class Subject:
    """The module to run: created once, instantiated for each set of sizes."""

    def __init__(self, reference, candidate, arm, device):
        with open(reference, encoding="utf-8") as text:
            self._tree = ast.parse(text.read(), reference)
        self._path = reference
        self._reference = module_at(self._tree, reference, {})
        self._candidate = None
        self._wrap = lambda model: model
        self._device = device
        self._name = None
        self.library = None  # what a library's arm is called in labels
        if candidate:
            self._candidate = Candidate(candidate, self._reference)
            if not hasattr(self._candidate.module, "ModelNew"):
                raise AttributeError(f"{os.path.basename(candidate)} defines no class ModelNew")
        elif arm.startswith(LIBRARY):
            kind, self.library = library_of(self._reference, arm)
            self._name = kind.__name__
        else:
            self._name, self._wrap, _ = ARMS[arm]
            if not hasattr(self._reference, self._name):
                raise NoSuchArm(f"the problem's reference.py defines no class {self._name}, which the arm "
                                f"{arm} runs")

    def at(self, sizes, parameters):
        """A callable at these sizes, a function that updates the model's parameters, and the model's method
        prepare(), or None. `parameters`: (python name, tensor) pairs; they become the model's parameters
        without a copy."""
        self._reference = module_at(self._tree, self._path, sizes)
        kind = (self._candidate.at(sizes, self._reference) if self._candidate
                else getattr(self._reference, self._name))
        arguments = self._reference.get_init_inputs()
        torch.manual_seed(0)  # other random values of the constructor are the same in every arm
        model = kind(*arguments).to(self._device).eval()
        refresh = self._share(model, parameters, arguments)
        return self._wrap(model), refresh, getattr(model, "prepare", None)

    def in_double(self, sizes, inputs, parameters):
        """The outputs in float64, of copies of all tensors."""
        reference = module_at(self._tree, self._path, sizes)
        torch.manual_seed(0)
        model = widen(reference.Model(*reference.get_init_inputs()).to(self._device).eval())
        for python, tensor in parameters:
            name, transposed = name_and_transpose(python)
            attribute(model, name).data = (tensor.t() if transposed else tensor).double().contiguous()
        return in_double(model, inputs)

    def _share(self, model, parameters, arguments):
        """Gives the model its parameters. If memory cannot be shared (a transpose), the returned function
        copies."""
        places = self._places(model, parameters, arguments)
        copies = []
        for (python, tensor), place in zip(parameters, places):
            transposed = name_and_transpose(python)[1]
            wanted = tensor.t() if transposed else tensor
            if tuple(place.shape) != tuple(wanted.shape):
                raise ValueError(f"the parameter {python} has the shape {list(place.shape)}, the problem's "
                                 f"{list(wanted.shape)}")
            if transposed or isinstance(owner_of(model, name_and_transpose(python)[0]), torch.nn.RNNBase):
                # Recurrent modules keep their weights in one block. Without it, cuDNN would copy them in
                # every call.
                if transposed:
                    place.data = wanted.contiguous()
                copies.append((place.data, wanted))
            else:
                place.data = tensor

        def refresh():
            for ours, judges in copies:
                ours.copy_(judges)

        return refresh

    def _places(self, model, parameters, arguments):
        """The model's parameters in the judge's order: by name, or, if the shapes equal the reference's, by
        position."""
        names = [name_and_transpose(python)[0] for python, _ in parameters]
        places = [attribute(model, name) for name in names]
        if all(place is not None for place in places):
            return places
        missing = names[[place is None for place in places].index(True)]
        ours = list(state_of(model).values())
        theirs = state_of(self._reference.Model(*arguments))
        if [p.shape for p in ours] != [p.shape for p in theirs.values()] or not set(names) <= set(theirs):
            raise AttributeError(f"{type(model).__name__} has no parameter {missing}; the problem's Model "
                                 f"has {', '.join(theirs)}")
        order = list(theirs)
        return [ours[order.index(name)] for name in names]
