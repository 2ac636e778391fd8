"""Finds the constants of a file that are sizes, smaller values of them, and the shape of every tensor as
formulas."""

import random
import re
import time

from failures import memory_that_ran_out
from formulas import floors, formula, telling
from run import Refused, Run, one_line

# Names of constants that say how something is computed: whatever their value, or as long as it is small.
NO_SIZE = re.compile(r"kernel|stride|pad|dilat|groups", re.I)
HARDLY_A_SIZE = re.compile(
    r"head|layer|block|step|scal|factor|eps|slope|expan|reduction|stage|ratio|rate|depth|cluster|expert",
    re.I)
LEAST_SIZE = 8        # smaller constants are parameters of the computation, except batch sizes
LEAST_DOUBTFUL = 65
CAPS = (16, 32, 64, 128)
QUICK, SLOW = 0.3, 1.5  # [s] for a run at the smallest sizes; it decides how many other sizes can be tried


def shrunk(value, cap):
    while value > cap and value % 2 == 0:
        value //= 2
    return cap if value > 2 * cap else value


class Sizes:
    """The constants that are sizes, and the shape of every tensor as formulas over them."""

    def __init__(self, file, deadline):
        self.file, self.deadline = file, deadline
        self.original = dict(file.constants.values)
        self.ties = {}  # constant → the one that it always equals
        self.cache = {}
        self.errors = []
        self.symbols = []

    def run(self, sizes):
        """The run at these sizes, or None if the file does not work with them."""
        sizes = self.complete(sizes)
        key = tuple(sorted(sizes.items()))
        if key not in self.cache:
            if time.monotonic() > self.deadline:
                return None
            try:
                run = Run(self.file, sizes)
                self.cache[key] = run.shapes(), run.integer_ranges(), run.seconds
            except (Refused, ImportError):
                raise
            except Exception as problem:
                self.errors.append(problem)
                self.cache[key] = None
        return self.cache[key]

    def trouble(self):
        """The last failure, in one line; if memory ran out, the last failure at sizes that fit."""
        others = [e for e in self.errors if not memory_that_ran_out(e)]
        return one_line((others or self.errors)[-1]) if self.errors else ""

    def complete(self, sizes):
        """A value for every constant of the file."""
        sizes = dict(self.original, **sizes)
        for follower, leader in self.ties.items():
            sizes[follower] = sizes[leader]
        return sizes

    def candidates(self):
        def could_be(name, value):
            if "batch" in name.lower():
                return value > 1
            return (value >= (LEAST_DOUBTFUL if HARDLY_A_SIZE.search(name) else LEAST_SIZE)
                    and not NO_SIZE.search(name))

        return [name for name, value in self.original.items() if could_be(name, value)]

    def find_base(self):
        """Small values at which the file works."""
        names = self.candidates()
        for cap in CAPS:
            for batch in (4, cap):  # the second keeps equal constants equal
                base = {n: shrunk(self.original[n], batch if "batch" in n.lower() else cap) for n in names}
                if self.run(base):
                    return base
        # Something requires a certain value: try the batches alone, then one constant after the other.
        base = {n: shrunk(self.original[n], 2) for n in names if "batch" in n.lower()}
        if not self.run(base):
            base = {}
            if not self.run(base):
                raise Refused(self.trouble() or "it takes too long on the CPU at any size")
        for name in sorted(names, key=lambda n: -self.original[n]):
            for cap in CAPS:
                smaller = dict(base, **{name: shrunk(self.original[name], cap)})
                if name not in base and self.original[name] > cap and self.run(smaller):
                    base = smaller
                    break
        return base

    def settle(self):
        """Finds self.base, self.symbols, self.shapes (name → [formula]), self.values (symbol → working
        values)."""
        base = self.find_base()
        if self.run(base)[2] > SLOW:
            smallest = dict(base, **{n: 1 for n in base if "batch" in n.lower()})
            base = smallest if self.run(smallest) else base
        fixed = set()
        while True:
            self.base = {n: v for n, v in base.items() if n not in fixed}
            here = self.run(self.base)
            if not here:
                trouble = self.trouble()
                raise Refused("its constants depend on each other in an unknown way: "
                              f"{trouble}" if trouble else "it takes too long on the CPU")
            self.points, self.values, self.symbols = {}, {}, []
            drop = None
            for name in sorted(self.base, key=lambda n: self.file.constants.order[n]):
                if name not in self.ties:
                    drop = self.probe(name, here) or drop
            if not drop:
                drop = self.fit(here)
            if not drop:
                return
            fixed |= {drop} | {follower for follower, leader in self.ties.items() if leader == drop}

    def probe(self, name, here):
        """Whether other values of one constant work, and what they change. Returns the name if it must keep
        its value."""
        drop = self.vary(name, here)
        if not drop or self.points_tried:
            return drop
        # No other value works: perhaps another constant with the same value has to change with it.
        for other in self.base:
            if (other != name and other not in self.ties and self.original[other] == self.original[name]
                    and self.base[other] == self.base[name] and other not in self.symbols):
                self.ties[other] = name
                if not self.vary(name, here):
                    return None
                del self.ties[other]
        return drop

    def vary(self, name, here):
        b = self.base[name]
        self.points_tried = False
        patience = 9 if here[2] < QUICK else 4 if here[2] < SLOW else 2
        points = []
        for value in (b + 1, 2 * b, 3 * b, b - 1, b + 2, b + 3, 4 * b, b // 2, b + 8)[:patience]:
            if value < 1 or value == b:
                continue
            there = self.run(dict(self.base, **{name: value}))
            if not there:
                continue
            self.points_tried = True
            if there[1] != here[1] or (
                    {n: len(s) for n, s in there[0].items()} != {n: len(s) for n, s in here[0].items()}):
                return name  # ranges of integers are numbers in a definition; another number of tensors is
                             # another problem
            points.append((value, there[0]))
        if not points or all(shapes == here[0] for _, shapes in points):
            return name
        self.points[name] = points
        self.values[name] = [b] + [value for value, _ in points if value < 4 * b]
        self.symbols.append(name)
        return None

    def fit(self, here):
        """Formulas for all shapes, or the name of a constant whose effect has no formula."""
        joint = []
        chance = random.Random(1)
        for _ in range(12 if here[2] < QUICK else 3 if here[2] < SLOW else 1):
            sizes = dict(self.base, **{s: chance.choice(self.values[s]) for s in self.symbols})
            there = self.run(sizes)
            if there and {n: len(s) for n, s in there[0].items()} == {n: len(s) for n, s in here[0].items()}:
                joint.append((sizes, there[0]))
        self.shapes = {}
        for name, shape in here[0].items():
            extents = []
            for axis in range(len(shape)):
                samples = [(self.base, shape[axis])]
                used = []
                for s in self.symbols:
                    if any(shapes[name][axis] != shape[axis] for _, shapes in self.points[s]):
                        used.append(s)
                    samples += [(dict(self.base, **{s: value}), shapes[name][axis])
                                for value, shapes in self.points[s]]
                samples += [(sizes, shapes[name][axis]) for sizes, shapes in joint]
                text = formula(used, self.sharpened(used, samples, name, axis, here))
                if text is None:
                    return used[-1]
                extents.append(text)
            self.shapes[name] = extents
        return None

    def sharpened(self, symbols, samples, name, axis, here):
        """The samples, extended where several divisions by a stride match all of them: by sizes at which
        these differ."""
        tried = set()
        patience = 9 if here[2] < QUICK else 4 if here[2] < SLOW else 1
        while len(found := floors(symbols, samples)) > 1 and len(tried) < patience:
            s = symbols[0]
            at = telling(found, [v for v in range(max(1, self.base[s] // 2), 4 * self.base[s])
                                 if v not in tried])
            if at is None:
                break
            tried.add(at)
            sizes = dict(self.base, **{s: at})
            there = self.run(sizes)
            if there and name in there[0] and axis < len(there[0][name]):
                samples = samples + [(sizes, there[0][name][axis])]
        return samples

    def works(self, sizes):
        there = self.run(dict(self.base, **sizes))
        return bool(there)
