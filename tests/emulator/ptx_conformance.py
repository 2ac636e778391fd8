#!/usr/bin/env python3
"""Writes a CUDA program that checks one class of PTX instructions.

    tests/emulator/ptx_conformance.py CLASS > program.cu      # without CLASS: the classes, one a line

Classes follow the sections of the PTX ISA (9.0, 9.7). Every instruction of the class is made for each type,
rounding and modifier of its table, with operands at the limits and at random. The expected values are
computed here with whole numbers, fractions and decimals of 60 digits, never with this machine's floating
point. The program prints PASS, or each instruction that differs with its operands.
"""

import dataclasses
import decimal
import fractions
import functools
import itertools
import math
import operator
import random
import sys

Fraction = fractions.Fraction
decimal.getcontext().prec = 60
DRAW = random.Random(28)
NAN, POSITIVE, NEGATIVE = "nan", math.inf, -math.inf


class Format:
    """A binary floating-point format; values are fractions, infinities, NAN, and 'n0' for -0."""

    def __init__(self, name, exponent_bits, fraction_bits):
        self.name, self.bits, self.fraction = name, 1 + exponent_bits + fraction_bits, fraction_bits
        self.bias = (1 << (exponent_bits - 1)) - 1
        self.special = (1 << exponent_bits) - 1
        self.least = 1 - self.bias - fraction_bits  # the exponent of the last place of a subnormal number

    def value(self, word):
        sign, exponent = word >> (self.bits - 1), word >> self.fraction & self.special
        fraction = word & ((1 << self.fraction) - 1)
        if exponent == self.special:
            return NAN if fraction else (NEGATIVE if sign else POSITIVE)
        if exponent == 0 and fraction == 0:
            return "n0" if sign else Fraction(0)
        mantissa = fraction + (1 << self.fraction if exponent else 0)
        value = Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - 1 + self.least)
        return -value if sign else value

    def word(self, value, rounding="rn"):
        """The bits of a value, rounded once."""
        top = 1 << (self.bits - 1)
        if value == NAN:
            return self.special << self.fraction | 1 << (self.fraction - 1)
        if value == "n0":
            return top
        if value in (POSITIVE, NEGATIVE):
            return self.special << self.fraction | (top if value == NEGATIVE else 0)
        sign, value = (top, -value) if value < 0 else (0, value)
        if value == 0:
            return sign
        exponent = value.numerator.bit_length() - value.denominator.bit_length()
        if Fraction(2) ** exponent > value:
            exponent -= 1
        place = max(exponent - self.fraction, self.least)
        units = value / Fraction(2) ** place
        whole = math.floor(units)
        rest = units - whole
        up = {"rz": False, "rm": bool(sign) and rest > 0, "rp": not sign and rest > 0,
              "rna": rest >= Fraction(1, 2),
              "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)}[rounding]
        whole += up
        word = whole + ((place - self.least) << self.fraction)  # a carry into the exponent is right as it is
        most = (self.special << self.fraction) - 1
        if word > most:
            away = rounding in ("rn", "rna") or (rounding == "rm" and sign) or (rounding == "rp" and not sign)
            word = most + 1 if away else most
        return sign | word

    def samples(self, count):
        most = (self.special << self.fraction) - 1
        one = self.bias << self.fraction
        limits = [0, 1, (1 << self.fraction) - 1, 1 << self.fraction, one, one + 1, one - 1, most,
                  most + 1, most + 1 + (1 << (self.fraction - 1)), one + (1 << (self.fraction - 1))]
        words = limits + [word | 1 << (self.bits - 1) for word in limits[:9]]
        near = [one + DRAW.randrange(-4 << self.fraction, 4 << self.fraction) | DRAW.getrandbits(1) << (self.bits - 1)
                for _ in range(count)]
        return words, near + [DRAW.getrandbits(self.bits) for _ in range(count // 2)]


F16, BF16 = Format("f16", 5, 10), Format("bf16", 8, 7)
F32, F64 = Format("f32", 8, 23), Format("f64", 11, 52)
FORMATS = {f.name: f for f in (F16, BF16, F32, F64)}


def number(value):
    return Fraction(0) if value == "n0" else value


def negated(value):
    if value == NAN:
        return NAN
    return "n0" if value == 0 and value != "n0" else Fraction(0) if value == "n0" else -value


def is_negative(value):
    return value == "n0" or value != NAN and number(value) < 0


def sum_of(a, b, rounding):
    if NAN in (a, b) or (POSITIVE in (a, b) and NEGATIVE in (a, b)):
        return NAN
    x, y = number(a), number(b)
    for value in (x, y):
        if value in (POSITIVE, NEGATIVE):
            return value
    if x + y != 0:
        return x + y
    if a == b:  # zeros of one sign
        return a
    return "n0" if rounding == "rm" else Fraction(0)


def product_of(a, b):
    if NAN in (a, b):
        return NAN
    sign = is_negative(a) != is_negative(b)
    x, y = abs(number(a)), abs(number(b))
    if (x == math.inf and y == 0) or (y == math.inf and x == 0):
        return NAN
    value = POSITIVE if math.inf in (x, y) else x * y
    return negated(value) if sign else value


def quotient_of(a, b):
    if NAN in (a, b):
        return NAN
    sign = is_negative(a) != is_negative(b)
    x, y = abs(number(a)), abs(number(b))
    if (x == math.inf and y == math.inf) or (x == 0 and y == 0):
        return NAN
    value = POSITIVE if x == math.inf or y == 0 else Fraction(0) if y == math.inf else x / y
    return negated(value) if sign else value


def root_of(a, form):
    """Precise enough to be rounded once: the root's floor at twice the places, and whether it is exact."""
    if a == NAN or (is_negative(a) and a != "n0"):
        return NAN
    if a == "n0" or a == 0 or a == POSITIVE:
        return a
    shift = 2 * (form.fraction + form.bias + 8)
    scaled = a * Fraction(4) ** shift
    whole = scaled.numerator // scaled.denominator
    root = math.isqrt(whole)
    exact = Fraction(root * root) == scaled
    return Fraction(root * 2 + (0 if exact else 1), 2 << shift)


def flushed(word, form):
    """.ftz: a subnormal number is a zero of its sign."""
    magnitude = word & ((1 << (form.bits - 1)) - 1)
    return word - magnitude if magnitude < 1 << form.fraction else word


# --- instructions ------------------------------------------------------------------------------------------
REGISTER = {"16": ("unsigned short", "h"), "32": ("unsigned", "r"), "64": ("unsigned long long", "l"),
            "f32": ("float", "f"), "f64": ("double", "d")}


def bits_of(kind):
    return FORMATS[kind].bits if kind in FORMATS else 32 if kind.endswith("x2") or kind in ("pred", "tf32") else int(kind[1:])


def register_of(kind):
    return REGISTER[kind] if kind in REGISTER else REGISTER[str(bits_of(kind))]


class Instruction:
    """`operands`: the types of the sources; `expected`: from their words to the result's."""

    def __init__(self, name, result, operands, expected, rows, near=None):
        self.name, self.result, self.operands, self.near = name, result, operands, near
        self.rows = [(row, expected(*row)) for row in rows]


def signed(word, bits):
    return word - (1 << bits) if word >> (bits - 1) else word


def integers(bits, count):
    limits = [0, 1, 2, (1 << (bits - 1)) - 1, 1 << (bits - 1), (1 << bits) - 1, (1 << bits) - 2, 1 << (bits // 2)]
    return limits, [DRAW.getrandbits(bits) >> DRAW.randrange(bits) for _ in range(count)]


def rows_of(kinds, count=24):
    """Every pair of limits (of triples a part), and `count` rows at random."""
    pools = [FORMATS[k].samples(count) if k in FORMATS else integers(bits_of(k), count) for k in kinds]
    rows = list(itertools.product(*(limits for limits, _ in pools)))
    DRAW.shuffle(rows)
    return rows[:150] + [tuple(DRAW.choice(drawn) for _, drawn in pools) for _ in range(count)]


def integer_instructions():
    def make(name, kind, function, arity, result=None, keep=lambda *row: True, kinds=None):
        bits, result = bits_of(kind), result or kind
        def expected(*row):
            values = [signed(x, b) if kind[0] == "s" else x for x, b in zip(row, widths)]
            return function(*values) & ((1 << bits_of(result)) - 1)
        kinds = kinds or [kind] * arity
        widths = [bits_of(k) for k in kinds]
        rows = [row for row in rows_of(kinds) if keep(*row)]
        return Instruction(f"{name}.{kind}", result, kinds, expected, rows)

    def truncated(a, b):
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    for kind in ("u16", "s16", "u32", "s32", "u64", "s64"):
        bits = bits_of(kind)
        yield make("add", kind, lambda a, b: a + b, 2)
        yield make("sub", kind, lambda a, b: a - b, 2)
        yield make("mul.lo", kind, lambda a, b: a * b, 2)
        yield make("mul.hi", kind, lambda a, b, n=bits: a * b >> n, 2)
        yield make("mad.lo", kind, lambda a, b, c: a * b + c, 3)
        yield make("mad.hi", kind, lambda a, b, c, n=bits: (a * b >> n) + c, 3)
        yield make("sad", kind, lambda a, b, c: abs(a - b) + c, 3)
        some = lambda a, b, n=bits, k=kind: b != 0 and not (k[0] == "s" and b == (1 << n) - 1)
        yield make("div", kind, truncated, 2, keep=some)
        yield make("rem", kind, lambda a, b: a - truncated(a, b) * b, 2, keep=some)
        yield make("min", kind, min, 2)
        yield make("max", kind, max, 2)
        if bits < 64:
            wide = kind[0] + str(2 * bits)
            yield make("mul.wide", kind, lambda a, b: a * b, 2, result=wide)
            yield make("mad.wide", kind, lambda a, b, c: a * b + c, 3, result=wide, kinds=[kind, kind, wide])
    for kind in ("s16", "s32", "s64"):
        yield make("abs", kind, abs, 1)
        yield make("neg", kind, lambda a: -a, 1)
    clamp = lambda x: max(-1 << 31, min((1 << 31) - 1, x))
    yield make("add.sat", "s32", lambda a, b: clamp(a + b), 2)
    yield make("sub.sat", "s32", lambda a, b: clamp(a - b), 2)
    for kind in ("u32", "s32"):
        low = (lambda x: signed(x & 0xffffff, 24)) if kind == "s32" else (lambda x: x & 0xffffff)
        for half, shift in (("lo", 0), ("hi", 16)):
            yield make(f"mul24.{half}", kind, lambda a, b, f=low, s=shift: f(a) * f(b) >> s, 2)
            yield make(f"mad24.{half}", kind, lambda a, b, c, f=low, s=shift: (f(a) * f(b) >> s) + c, 3)
    for first, second in itertools.product(("u32", "s32"), repeat=2):
        def piece(word, i, bits, kind):
            value = word >> (i * bits) & ((1 << bits) - 1)
            return signed(value, bits) if kind == "s32" else value
        def dot4(a, b, c, f=first, s=second):
            return c + sum(piece(a, i, 8, f) * piece(b, i, 8, s) for i in range(4)) & 0xffffffff
        yield Instruction(f"dp4a.{first}.{second}", "b32", ["b32"] * 3, dot4, rows_of(["b32"] * 3))
        for half, at in (("lo", 0), ("hi", 2)):
            def dot2(a, b, c, f=first, s=second, at=at):
                return c + sum(piece(a, i, 16, f) * piece(b, at + i, 8, s) for i in range(2)) & 0xffffffff
            yield Instruction(f"dp2a.{half}.{first}.{second}", "b32", ["b32"] * 3, dot2, rows_of(["b32"] * 3))


def bit_instructions():
    def make(name, result, kinds, function, rows=None):
        mask = (1 << bits_of(result)) - 1
        return Instruction(name, result, kinds, lambda *row: function(*row) & mask, rows or rows_of(kinds))

    def with_counts(kinds):
        return [row[:-1] + (DRAW.choice((0, 1, 7, 15, 16, 31, 32, 33, 63, 64, 65, 255)),) for row in rows_of(kinds)]

    for kind in ("b16", "b32", "b64"):
        bits = bits_of(kind)
        yield make(f"and.{kind}", kind, [kind] * 2, lambda a, b: a & b)
        yield make(f"or.{kind}", kind, [kind] * 2, lambda a, b: a | b)
        yield make(f"xor.{kind}", kind, [kind] * 2, lambda a, b: a ^ b)
        yield make(f"not.{kind}", kind, [kind], lambda a: ~a)
        yield make(f"cnot.{kind}", kind, [kind], lambda a: a == 0)
        by = with_counts([kind, "u32"])
        yield make(f"shl.{kind}", kind, [kind, "u32"], lambda a, n, w=bits: a << n if n < w else 0, by)
        yield make(f"shr.u{bits}", kind, [kind, "u32"], lambda a, n: a >> n, by)
        yield make(f"shr.s{bits}", kind, [kind, "u32"], lambda a, n, w=bits: signed(a, w) >> n, by)
    for kind in ("b32", "b64"):
        bits = bits_of(kind)
        yield make(f"popc.{kind}", "u32", [kind], lambda a: bin(a).count("1"))
        yield make(f"clz.{kind}", "u32", [kind], lambda a, w=bits: w - a.bit_length())
        yield make(f"brev.{kind}", kind, [kind], lambda a, w=bits: int(f"{a:0{w}b}"[::-1], 2))
        def insert(a, b, position, length, w=bits):
            position, length = position & 255, length & 255
            for i in range(length):
                if position + i < w:
                    b = b & ~(1 << (position + i)) | (a >> i & 1 if i < w else 0) << (position + i)
            return b
        rows = [row + (DRAW.choice((0, 1, 5, 31, 32, 63, 64, 255)),) for row in with_counts([kind, kind, "u32"])]
        yield make(f"bfi.{kind}", kind, [kind, kind, "u32", "u32"], insert, rows)
        for letter in "us":
            def find(a, w=bits, s=letter):
                value = a if s == "u" or not a >> (w - 1) else ~a & ((1 << w) - 1)
                return value.bit_length() - 1
            def extract(a, position, length, w=bits, s=letter):
                position, length = position & 255, length & 255
                last = min(position + length - 1, w - 1)
                sign = a >> last & 1 if s == "s" and length else 0
                return sum((a >> (position + i) & 1 if i < length and position + i < w else sign) << i
                           for i in range(w))
            yield make(f"bfind.{letter}{bits}", "u32", [kind], find)
            yield make(f"bfind.shiftamt.{letter}{bits}", "u32", [kind],
                       lambda a, w=bits, f=find: w - 1 - f(a) if f(a) >= 0 else -1)
            rows = [row + (DRAW.choice((0, 1, 5, 31, 32, 63, 64, 255)),) for row in with_counts([kind, "u32"])]
            yield make(f"bfe.{letter}{bits}", kind, [kind, "u32", "u32"], extract, rows)
    for table in (0x80, 0xe8, 0x96, 0x1b, 0xca):
        def lookup(a, b, c, t=table):
            return sum((t >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i for i in range(32))
        instruction = make("lop3.b32", "b32", ["b32"] * 3, lookup)
        instruction.name, instruction.immediate = "lop3.b32", str(table)
        yield instruction
    def permute(a, b, selector):
        source, result = a | b << 32, 0
        for i in range(4):
            nibble = selector >> (4 * i) & 15
            byte = source >> (8 * (nibble & 7)) & 255
            result |= ((255 if byte & 128 else 0) if nibble & 8 else byte) << (8 * i)
        return result
    yield make("prmt.b32", "b32", ["b32"] * 3, permute)
    for mode, limit in (("clamp", lambda n: min(n, 32)), ("wrap", lambda n: n & 31)):
        rows = with_counts(["b32", "b32", "u32"])
        yield make(f"shf.l.{mode}.b32", "b32", ["b32"] * 3, lambda a, b, n, f=limit: (b << 32 | a) << f(n) >> 32, rows)
        yield make(f"shf.r.{mode}.b32", "b32", ["b32"] * 3, lambda a, b, n, f=limit: (b << 32 | a) >> f(n), rows)


def with_saturation(word, form):
    value = form.value(word)
    if value == NAN or is_negative(value):
        return 0
    return form.word(Fraction(1)) if number(value) > 1 else word


def real_instructions(form, roundings=("rn", "rz", "rm", "rp")):
    kind = form.name

    def make(name, function, arity, rounding=None, flush=False, saturate=False):
        def expected(*row):
            if flush:
                row = [flushed(word, form) for word in row]
            word = form.word(function(*(form.value(x) for x in row)), rounding or "rn")
            if flush:
                word = flushed(word, form)
            return with_saturation(word, form) if saturate else word
        return Instruction(f"{name}.{kind}", kind, [kind] * arity, expected, rows_of([kind] * arity))

    modifiers = [("", False, False)]
    if kind == "f32":
        modifiers += [(".ftz", True, False), (".sat", False, True), (".ftz.sat", True, True)]
    for r, (suffix, flush, saturate) in itertools.product(roundings, modifiers):
        def add(a, b, r=r):
            return sum_of(a, b, r)
        def fused(a, b, c, r=r):
            return sum_of(product_of(a, b), c, r)
        yield make(f"add.{r}{suffix}", add, 2, r, flush, saturate)
        yield make(f"sub.{r}{suffix}", lambda a, b, f=add: f(a, negated(b)), 2, r, flush, saturate)
        yield make(f"mul.{r}{suffix}", product_of, 2, r, flush, saturate)
        yield make(f"fma.{r}{suffix}", fused, 3, r, flush, saturate)
        if not saturate:
            yield make(f"div.{r}{suffix}", quotient_of, 2, r, flush)
            yield make(f"rcp.{r}{suffix}", lambda a: quotient_of(Fraction(1), a), 1, r, flush)
            yield make(f"sqrt.{r}{suffix}", lambda a: root_of(a, form), 1, r, flush)
    for name, sign in (("min", 1), ("max", -1)):
        yield make(name, lambda a, b, s=sign: least(a, b, s, False), 2)
        if kind == "f32":
            yield make(f"{name}.NaN", lambda a, b, s=sign: least(a, b, s, True), 2)
            yield make(f"{name}.ftz", lambda a, b, s=sign: least(a, b, s, False), 2, None, True)
    top = 1 << (form.bits - 1)
    yield Instruction(f"copysign.{kind}", kind, [kind] * 2, lambda a, b: b & ~top | a & top, rows_of([kind] * 2))
    yield make("neg", negated, 1)
    yield make("abs", lambda a: negated(a) if is_negative(a) else a, 1)


def least(a, b, sign, nan):
    """The minimum (sign 1) or the maximum (-1); -0 is less than +0; a number rather than a NaN."""
    if NAN in (a, b):
        return NAN if nan or a == b else b if a == NAN else a
    key = lambda x: (number(x), 0 if x == "n0" else 1)
    return min(a, b, key=key) if sign > 0 else max(a, b, key=key)


def fused_near_ties(form):
    """Products in the middle between two numbers, and an addend far below that decides."""
    rows, one, tiny = [], form.bias << form.fraction, 1
    while len(rows) < 40:
        a, b = (one + DRAW.randrange(1 << form.fraction) for _ in range(2))
        product = form.value(a) * form.value(b)
        place = Fraction(1, 1 << (form.fraction + (product < 2)))
        if (product / place) % 2 == 1:
            rows.append((a, b, tiny | DRAW.getrandbits(1) << (form.bits - 1)))
    return rows


def half_instructions():
    for form in (F16, BF16):
        def each(function, arity, pair):
            def one(*row):
                return form.word(function(*(form.value(x) for x in row)))
            if not pair:
                return one
            return lambda *row: one(*(x & 0xffff for x in row)) | one(*(x >> 16 for x in row)) << 16
        for pair in (False, True):
            kind = form.name + ("x2" if pair else "")
            def rows(arity):
                single = rows_of([form.name] * arity, 80) + (fused_near_ties(form) if arity == 3 else [])
                if not pair:
                    return single
                return [tuple(a | b << 16 for a, b in zip(row, DRAW.choice(single))) for row in single]
            table = [("fma.rn", lambda a, b, c: sum_of(product_of(a, b), c, "rn"), 3)]
            table += [("add.rn", lambda a, b: sum_of(a, b, "rn"), 2), ("mul.rn", product_of, 2),
                      ("sub.rn", lambda a, b: sum_of(a, negated(b), "rn"), 2), ("neg", negated, 1),
                      ("abs", lambda a: negated(a) if is_negative(a) else a, 1)]
            table += [(name, lambda a, b, s=sign, n=nan: least(a, b, s, n), 2)
                      for name, sign, nan in (("min", 1, False), ("max", -1, False), ("min.NaN", 1, True), ("max.NaN", -1, True))]
            for name, function, arity in table:
                yield Instruction(f"{name}.{kind}", kind, [kind] * arity, each(function, arity, pair), rows(arity))


def carry_instructions():
    """Words of 64, 96 and 128 bits: the carry goes from one instruction to the next."""
    for bits in (32, 64):
        word = f"u{bits}"
        mask = (1 << bits) - 1
        for name, sign in (("add", 1), ("sub", -1)):
            def expected(a, b, c, d, s=sign, n=bits, m=mask):
                return ((a | b << n) + s * (c | d << n)) >> n & m
            text = (f"{{{{ .reg .u{bits} low; {name}.cc.u{bits} low, %1, %3; {name}c.u{bits} %0, %2, %4; }}}}")
            instruction = Instruction(f"{name}.cc, {name}c.u{bits}", word, [word] * 4, expected, rows_of([word] * 4))
            instruction.text = text.replace("{{", "{").replace("}}", "}")
            yield instruction
        def wide(a, b, c, d, n=bits, m=mask):
            return (a * b + (c | d << n)) >> n & m
        instruction = Instruction(f"mad.lo.cc, madc.hi.u{bits}", word, [word] * 4, wide, rows_of([word] * 4))
        instruction.text = (f"{{ .reg .u{bits} low; mad.lo.cc.u{bits} low, %1, %2, %3; "
                            f"madc.hi.u{bits} %0, %1, %2, %4; }}")
        yield instruction


def compare_instructions():
    kinds = ["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64", "f32", "f64"]
    tests = {"eq": lambda c: c == 0, "ne": lambda c: c != 0, "lt": lambda c: c < 0, "le": lambda c: c <= 0,
             "gt": lambda c: c > 0, "ge": lambda c: c >= 0}
    unsigned = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
    for kind in kinds:
        names = list(tests)[:2] if kind[0] == "b" else list(tests)
        names += list(unsigned) if kind[0] == "u" else []
        names += [n + "u" for n in tests] + ["num", "nan"] if kind[0] == "f" else []
        for name in names:
            def expected(a, b, kind=kind, name=name):
                if kind[0] == "f":
                    a, b = FORMATS[kind].value(a), FORMATS[kind].value(b)
                    if name in ("num", "nan") or NAN in (a, b):
                        return int((NAN in (a, b)) == (name == "nan")) if name in ("num", "nan") else int(name.endswith("u"))
                    a, b = number(a), number(b)
                elif kind[0] == "s":
                    a, b = signed(a, bits_of(kind)), signed(b, bits_of(kind))
                return int(tests[unsigned.get(name, name[:2])]((a > b) - (a < b)))
            rows = rows_of([kind] * 2)
            rows += [(a, a) for a, _ in rows[:8]]
            instruction = Instruction(f"setp.{name}.{kind}", "u32", [kind] * 2, expected, rows)
            instruction.text = f"{{ .reg .pred p; setp.{name}.{kind} p, %1, %2; selp.u32 %0, 1, 0, p; }}"
            yield instruction
            if kind in ("s32", "u32", "f32"):
                yield Instruction(f"set.{name}.u32.{kind}", "u32", [kind] * 2,
                                  lambda a, b, f=expected: 0xffffffff * f(a, b), rows)
    for form in (F32, F64):
        top = form.special << form.fraction
        magnitude = lambda w, f=form: w & ((1 << (f.bits - 1)) - 1)
        for name, test in {"finite": lambda m, t, f: m < t, "infinite": lambda m, t, f: m == t,
                           "number": lambda m, t, f: m <= t, "notanumber": lambda m, t, f: m > t,
                           "normal": lambda m, t, f: 1 << f.fraction <= m < t,
                           "subnormal": lambda m, t, f: 0 < m < 1 << f.fraction}.items():
            def expected(a, test=test, form=form, top=top, magnitude=magnitude):
                return int(test(magnitude(a), top, form))
            instruction = Instruction(f"testp.{name}.{form.name}", "u32", [form.name], expected, rows_of([form.name]))
            instruction.text = f"{{ .reg .pred p; testp.{name}.{form.name} p, %1; selp.u32 %0, 1, 0, p; }}"
            yield instruction


def conversions():
    whole = ["u16", "s16", "u32", "s32", "u64", "s64"]
    for source, target in itertools.product(whole, repeat=2):
        for saturate in (False, True):
            bits, wide = bits_of(source), bits_of(target)
            least, most = (-1 << (wide - 1), (1 << (wide - 1)) - 1) if target[0] == "s" else (0, (1 << wide) - 1)
            def expected(a, s=source, n=bits, w=wide, low=least, high=most, sat=saturate):
                value = signed(a, n) if s[0] == "s" else a
                return (max(low, min(high, value)) if sat else value) & ((1 << w) - 1)
            yield Instruction(f"cvt{'.sat' if saturate else ''}.{target}.{source}", target, [source], expected, rows_of([source]))
    rounded = {"rni": lambda x: round(x), "rzi": lambda x: math.trunc(x), "rmi": math.floor, "rpi": math.ceil}
    for source, (name, function) in itertools.product(("f16", "f32", "f64"), rounded.items()):
        form = FORMATS[source]
        for target in ("u32", "s32", "u64", "s64"):
            wide = bits_of(target)
            least, most = (-1 << (wide - 1), (1 << (wide - 1)) - 1) if target[0] == "s" else (0, (1 << wide) - 1)
            def expected(a, form=form, f=function, w=wide, low=least, high=most):
                value = form.value(a)
                if value == NAN:  # Table of cvt: 0 of 32 bits and less, the top bit of 64
                    return None
                value = high if value == POSITIVE else low if value == NEGATIVE else max(low, min(high, f(number(value))))
                return value & ((1 << w) - 1)
            rows = [row for row in rows_of([source], 60) if form.value(row[0]) != NAN]
            yield Instruction(f"cvt.{name}.{target}.{source}", target, [source], expected, rows)
        if source != "f16":
            def to_whole(a, form=form, f=function):
                value = form.value(a)
                if value in (NAN, "n0", POSITIVE, NEGATIVE):
                    return form.word(value)
                result = Fraction(f(value))
                return form.word("n0" if result == 0 and value < 0 else result)
            yield Instruction(f"cvt.{name}.{source}.{source}", source, [source], to_whole, rows_of([source], 60))
    for target, source, r in itertools.product(("f32", "f64"), whole, ("rn", "rz", "rm", "rp")):
        def expected(a, s=source, form=FORMATS[target], r=r):
            return form.word(Fraction(signed(a, bits_of(s)) if s[0] == "s" else a), r)
        yield Instruction(f"cvt.{r}.{target}.{source}", target, [source], expected, rows_of([source], 60))
    for r in ("rn", "rz", "rm", "rp"):
        def narrow(a, r=r):
            return F32.word(F64.value(a), r)
        near = [(F64.word(F32.value(word) * (1 + Fraction(DRAW.randrange(-9, 9), 1 << 30))),)
                for (word,) in rows_of(["f32"], 60) if isinstance(F32.value(word), Fraction)]
        yield Instruction(f"cvt.{r}.f32.f64", "f32", ["f64"], narrow, rows_of(["f64"]) + near)
    for source, target in (("f32", "f64"), ("f16", "f32"), ("bf16", "f32")):
        yield Instruction(f"cvt.{target}.{source}", target, [source],
                          lambda a, s=source, t=target: FORMATS[t].word(FORMATS[s].value(a)), rows_of([source], 60))
    for form, r in itertools.product((F16, BF16), ("rn", "rz")):
        def expected(a, form=form, r=r):
            return form.word(F32.value(a), r)
        near = [(F32.word(form.value(word) * (1 + Fraction(DRAW.randrange(-9, 9), 1 << 14))),)
                for (word,) in rows_of([form.name], 60) if isinstance(form.value(word), Fraction)]
        rows = rows_of(["f32"], 60) + near
        yield Instruction(f"cvt.{r}.{form.name}.f32", form.name, ["f32"], expected, rows)
        yield Instruction(f"cvt.{r}.{form.name}x2.f32", form.name + "x2", ["f32", "f32"],
                          lambda a, b, f=expected: f(a) << 16 | f(b), [a + DRAW.choice(rows) for a in rows])
    def to_tf32(a):
        value = F32.value(a)
        if not isinstance(value, Fraction) or value == 0:
            return a
        return Format("tf32", 8, 10).word(value, "rna") << 13
    rows = [row for row in rows_of(["f32"], 60) if isinstance(F32.value(row[0]), Fraction)]
    yield Instruction("cvt.rna.tf32.f32", "b32", ["f32"], to_tf32, rows)


def approximations():
    """Those of f32 that the ISA gives an error for: relative, or absolute."""
    Decimal = decimal.Decimal

    def of(value):
        return Decimal(value.numerator) / Decimal(value.denominator)

    def back(value):
        return Fraction(value)

    def rows(low, high, count=60):
        return [(F32.word(Fraction(DRAW.uniform(low, high))),) for _ in range(count)]

    def sine(x, shift):
        # A series of 40 terms; |x| <= pi.
        total, term = Fraction(0), Fraction(1) if shift else x
        for k in range(40):
            total += term
            term = -term * x * x / ((2 * k + 1) * (2 * k + 2)) if shift else -term * x * x / ((2 * k + 2) * (2 * k + 3))
        return total

    table = [
        ("rcp.approx.f32", lambda x: 1 / x, rows(0.01, 1e6), "relative", 2.0 ** -23),
        ("sqrt.approx.f32", lambda x: back(of(x).sqrt()), rows(1e-6, 1e9), "relative", 2.0 ** -23),
        ("rsqrt.approx.f32", lambda x: back(1 / of(x).sqrt()), rows(1e-6, 1e9), "relative", 2.0 ** -22.9),
        ("ex2.approx.f32", lambda x: back(Decimal(2) ** of(x)), rows(-100, 100), "relative", 2.0 ** -22),
        ("lg2.approx.f32", lambda x: back(of(x).ln() / Decimal(2).ln()), rows(0.5, 2), "absolute", 2.0 ** -22),
        ("lg2.approx.f32", lambda x: back(of(x).ln() / Decimal(2).ln()), rows(2, 1e9), "relative", 2.0 ** -22),
        ("sin.approx.f32", lambda x: sine(x, False), rows(-3.1, 3.1), "absolute", 2.0 ** -20.5),
        ("cos.approx.f32", lambda x: sine(x, True), rows(-3.1, 3.1), "absolute", 2.0 ** -20.5),
        ("tanh.approx.f32", lambda x: back(1 - 2 / ((2 * of(x)).exp() + 1)), rows(0.01, 4), "relative", 2.0 ** -11),
    ]
    for name, function, cases, how, error in table:
        def expected(a, f=function):
            return F32.word(f(F32.value(a)))
        # Half a unit of the last place is the rounding of what is compared with.
        yield Instruction(name, "f32", ["f32"], expected, cases, (how, error + 2.0 ** -24))


# --- instructions on memory and of whole warps --------------------------------------------------------------
# They need more than one line of assembly: `code` computes `d`, a Word, from the row `r` of this thread. `lane`
# is the thread's place in its warp, of which each has 32 consecutive rows.
MASK64 = (1 << 64) - 1


class Code(Instruction):
    def __init__(self, name, code, rows, result="b64"):
        super().__init__(name, result, [], lambda *_: 0, [])
        self.code, self.rows = code, rows


def words_at_random(count):
    return [DRAW.getrandbits(64) for _ in range(count)]


def mixed(values):
    """One word of several; Words of C++ do the same in `mixed()`."""
    return sum(value * (2 * i + 1) for i, value in enumerate(values)) & MASK64


def bytes_of(words):
    return b"".join(word.to_bytes(8, "little") for word in words)


def words_of(data):
    return [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]


class Fp8:
    """An 8-bit float; e4m3 has no infinity, and NaN in its last word only."""

    def __init__(self, name, exponent_bits, fraction_bits, last):
        self.name, self.last = name, last
        form = Format(name, exponent_bits + 1, fraction_bits)  # one bit more: no word is special
        shift = form.bias - (1 << (exponent_bits - 1)) + 1
        self.values = [form.value(word) * Fraction(2) ** shift if word >> fraction_bits else
                       Fraction(word) * Fraction(2) ** (2 - (1 << (exponent_bits - 1)) - fraction_bits)
                       for word in range(last + 1)]

    def word(self, value):
        """To nearest, ties to even; what is larger than the largest number becomes that one."""
        if value == NAN:
            return 0x7f
        sign = 0x80 if is_negative(value) else 0
        value = abs(number(value))
        if value >= self.values[self.last]:
            return sign | self.last
        above = next(i for i, each in enumerate(self.values) if each > value)
        low, high = value - self.values[above - 1], self.values[above] - value
        return sign | (above - 1 if low < high or (low == high and above & 1) else above)

    def value(self, word):
        magnitude = word & 0x7f
        if magnitude > self.last:
            return POSITIVE if self.name == "e5m2" and magnitude == 0x7c and not word >> 7 else (
                NEGATIVE if self.name == "e5m2" and magnitude == 0x7c else NAN)
        value = self.values[magnitude]
        return negated(value) if word >> 7 else value


E4M3, E5M2 = Fp8("e4m3", 4, 3, 0x7e), Fp8("e5m2", 5, 2, 0x7b)


def fp8_conversions():
    for form in (E4M3, E5M2):
        near = [(F32.word(form.values[i] * (1 + Fraction(DRAW.randrange(-9, 9), 1 << DRAW.choice((4, 5, 12))))),)
                for i in range(1, form.last + 1)]
        ties = [(F32.word((form.values[i] + form.values[i + 1]) / 2),) for i in range(form.last)]
        rows = rows_of(["f32"], 60) + near + ties
        rows += [(word | 1 << 31,) for (word,) in near[::7] + ties[::5]]
        pairs = [a + DRAW.choice(rows) for a in rows]
        yield Instruction(f"cvt.rn.satfinite.{form.name}x2.f32", "b16", ["f32", "f32"],
                          lambda a, b, f=form: f.word(F32.value(a)) << 8 | f.word(F32.value(b)), pairs)
        halves = [F16.word(F32.value(word)) for (word,) in rows]
        yield Instruction(f"cvt.rn.satfinite.{form.name}x2.f16x2", "b16", ["b32"],
                          lambda a, f=form: f.word(F16.value(a >> 16)) << 8 | f.word(F16.value(a & 0xffff)),
                          [(a << 16 | DRAW.choice(halves),) for a in halves])
        yield Instruction(f"cvt.rn.f16x2.{form.name}x2", "f16x2", ["b16"],
                          lambda a, f=form: F16.word(f.value(a >> 8)) << 16 | F16.word(f.value(a & 0xff)),
                          [(a << 8 | DRAW.getrandbits(8),) for a in range(256)])


def packed_instructions():
    def each(function, sign):
        def expected(*row):
            result = 0
            for at in (0, 16):
                parts = [x >> at & 0xffff for x in row]
                parts = [signed(x, 16) if sign else x for x in parts]
                result |= (function(*parts) & 0xffff) << at
            return result
        return expected

    limits = [0, 1, 0x7fff, 0x8000, 0xffff, 0x8001]
    for kind in ("u16x2", "s16x2"):
        rows = [(a << 16 | b, c << 16 | d) for a, c in itertools.product(limits, repeat=2)
                for b, d in [(DRAW.choice(limits), DRAW.choice(limits))]]
        rows += [tuple(DRAW.getrandbits(32) for _ in range(2)) for _ in range(40)]
        for name, function in (("add", lambda a, b: a + b), ("min", min), ("max", max)):
            yield Instruction(f"{name}.{kind}", "b32", ["b32", "b32"], each(function, kind[0] == "s"), rows)
    for name, function in (("min", min), ("max", max)):
        yield Instruction(f"{name}.relu.s16x2", "b32", ["b32", "b32"],
                          each(lambda a, b, f=function: max(f(a, b), 0), True), rows)


SPACES = {"global": ("scratch[at]", "l"), "shared": ("cells[threadIdx.x]", "r"), "": ("cells[threadIdx.x]", "l")}


def address_in(space):
    cell, constraint = SPACES[space]
    if space == "shared":
        return f'"r"(static_cast<unsigned>(__cvta_generic_to_shared({cell})))'
    return f'"{constraint}"({cell})'


def filled(space):
    """The 32 bytes of this thread's cell become the row's first four words."""
    return f"for (int i = 0; i < 4; ++i) {SPACES[space][0]}[i] = r.operands[i]; "


def memory_instructions():
    types = ["b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"]
    loads = {"global": [".ca", ".cg", ".cs", ".lu", ".cv", ".nc", ".L1::no_allocate", ".L2::128B", ""],
             "shared": [""], "": [".ca", ".cg", ""]}
    stores = {"global": [".wb", ".cg", ".cs", ".wt", ""], "shared": [""], "": [".wb", ""]}
    orders = {"ld": ["volatile", "relaxed.gpu", "acquire.sys", "relaxed.cta"],
              "st": ["volatile", "relaxed.gpu", "release.sys", "relaxed.cta"]}

    def register(kind, wide):
        if kind in ("f32", "f64"):
            return REGISTER[kind] + (False,)
        bits = 64 if wide else max(bits_of(kind), 32)
        return {32: ("unsigned", "r"), 64: ("Word", "l")}[bits] + (kind[0] == "s",)

    def load(space, how, kind, count, wide=False):
        if how == ".nc" and count * bits_of(kind) > 64:
            how = ""  # from the rows, which this kernel does not write and which are aligned to 8 bytes
        cpp, constraint, sign = register(kind, wide)
        size, bits = bits_of(kind) // 8, 64 if constraint == "l" else 32
        def expected(row):
            data = bytes_of(row)
            parts = [int.from_bytes(data[i * size:(i + 1) * size], "little") for i in range(count)]
            if sign:
                parts = [signed(x, bits_of(kind)) & ((1 << bits) - 1) for x in parts]
            return mixed(parts)
        name = f"ld{'.' + space if space else ''}{how}{f'.v{count}' if count > 1 else ''}.{kind}"
        names = ", ".join(f"%{i}" for i in range(count))
        to = f"{{{names}}}" if count > 1 else names
        outputs = ", ".join(f'"={constraint}"(x[{i}])' for i in range(count))
        place = '"l"(rows[at].operands)' if how == ".nc" else address_in(space)
        code = (f'{filled(space)}{cpp} x[{count}]; asm volatile("{name} {to}, [%{count}];" : {outputs} '
                f': {place} : "memory"); d = mixed(x);')
        rows = [tuple(words_at_random(4)) for _ in range(6)]
        return Code(name + (" wide" if wide else ""), code, [(row, expected(row)) for row in rows])

    def store(space, how, kind, count):
        cpp, constraint, _ = register(kind, False)
        size = bits_of(kind) // 8
        def expected(row):
            data = bytearray(bytes_of(row[:4]))
            for i in range(count):
                data[i * size:(i + 1) * size] = (row[4 + i] & ((1 << bits_of(kind)) - 1)).to_bytes(size, "little")
            return mixed(words_of(bytes(data)))
        name = f"st{'.' + space if space else ''}{how}{f'.v{count}' if count > 1 else ''}.{kind}"
        names = ", ".join(f"%{i + 1}" for i in range(count))
        source = f"{{{names}}}" if count > 1 else names
        inputs = ", ".join(f'"{constraint}"(as<{cpp}>(r.operands[{4 + i}]))' for i in range(count))
        code = (f'{filled(space)}asm volatile("{name} [%0], {source};" :: {address_in(space)}, {inputs} '
                f': "memory"); d = mixed({SPACES[space][0]});')
        rows = [tuple(words_at_random(8)) for _ in range(6)]
        return Code(name, code, [(row, expected(row)) for row in rows])

    for space in SPACES:
        turn = itertools.cycle(loads[space]), itertools.cycle(stores[space])
        for kind in types:
            for count in (1, 2, 4):
                if count * bits_of(kind) <= 128:
                    yield load(space, next(turn[0]), kind, count)
                    yield store(space, next(turn[1]), kind, count)
            if kind[0] != "f" and bits_of(kind) < 64:
                yield load(space, "", kind, 1, wide=True)
        for how in loads[space]:
            yield load(space, how, "u32", 1)
        for how in stores[space]:
            yield store(space, how, "u32", 1)
    for name, make in (("ld", load), ("st", store)):
        for order, kind in itertools.product(orders[name], ("u8", "u16", "u32", "u64", "f32")):
            # The order comes before the space.
            made = make("global", "", kind, 1)
            made.code = made.code.replace(f"{name}.global.", f"{name}.{order}.global.")
            made.name = made.name.replace(f"{name}.global.", f"{name}.{order}.global.")
            yield made
    def simple(name, code):
        return Code(name, code, [(row, mixed(row)) for row in (tuple(words_at_random(4)) for _ in range(6))])
    yield simple("cvta.to.shared.u64, cvta.shared.u64",
                 filled("shared") + 'Word a; asm("{ .reg .u64 s; cvta.to.shared.u64 s, %1; cvta.shared.u64 %0, s; }" '
                 ': "=l"(a) : "l"(cells[threadIdx.x])); d = mixed(*reinterpret_cast<Word (*)[4]>(a));')
    yield simple("cvta.to.global.u64, cvta.global.u64",
                 filled("global") + 'Word a; asm("{ .reg .u64 s; cvta.to.global.u64 s, %1; cvta.global.u64 %0, s; }" '
                 ': "=l"(a) : "l"(scratch[at])); d = mixed(*reinterpret_cast<Word (*)[4]>(a));')
    for space, cell, answer in (("shared", "cells[threadIdx.x]", 1), ("shared", "scratch[at]", 0),
                                ("global", "scratch[at]", 1), ("global", "cells[threadIdx.x]", 0)):
        yield Code(f"isspacep.{space}", 'unsigned x; asm("{ .reg .pred p; isspacep.' + space +
                   f' p, %1; selp.u32 %0, 1, 0, p; }}" : "=r"(x) : "l"({cell})); d = x;', [((0,), answer)] * 4)


def atomic_instructions():
    def wrapped(kind, function):
        bits = bits_of(kind)
        def operation(old, b, *c):
            read = (lambda x: signed(x, bits)) if kind[0] == "s" else (lambda x: x)
            return function(read(old), read(b), *map(read, c)) & ((1 << bits) - 1)
        return operation

    def real(form):
        return lambda old, b: form.word(sum_of(form.value(old), form.value(b), "rn"))

    def pair(form):
        one = real(form)
        return lambda old, b: one(old >> 16, b >> 16) << 16 | one(old & 0xffff, b & 0xffff)

    table = []
    for kind in ("u32", "s32", "u64"):
        table.append(("add", kind, wrapped(kind, lambda a, b: a + b)))
    for kind in ("u32", "s32", "u64", "s64"):
        table += [("min", kind, wrapped(kind, min)), ("max", kind, wrapped(kind, max))]
    for kind in ("b32", "b64"):
        table += [("and", kind, lambda a, b: a & b), ("or", kind, lambda a, b: a | b),
                  ("xor", kind, lambda a, b: a ^ b), ("exch", kind, lambda a, b: b),
                  ("cas", kind, lambda a, b, c: c if a == b else a)]
    table += [("inc", "u32", lambda a, b: 0 if a >= b else a + 1),
              ("dec", "u32", lambda a, b: b if a == 0 or a > b else a - 1),
              ("add", "f32", real(F32)), ("add", "f64", real(F64)), ("add.noftz", "f16x2", pair(F16)),
              ("add.noftz", "bf16x2", pair(BF16)), ("add.noftz", "f16", real(F16)), ("add.noftz", "bf16", real(BF16))]

    def operands_of(kind, arity):
        def one():
            if kind[:1] in "f" or kind[:2] == "bf":
                form = FORMATS[kind.removesuffix("x2")]
                draw = lambda: form.word(Fraction(DRAW.randrange(-4000, 4000), 1 << DRAW.randrange(8)))
                return draw() << 16 | draw() if kind.endswith("x2") else draw()
            return DRAW.choice(integers(bits_of(kind), 1)[0] + [DRAW.getrandbits(bits_of(kind))])
        row = [one() for _ in range(arity)]
        if arity == 3 and DRAW.random() < 0.5:
            row[1] = row[0]  # a compare that succeeds
        return tuple(row)

    scopes = itertools.cycle(["", ".cta", ".gpu", ".sys"])
    orders = itertools.cycle(["", ".relaxed", ".acquire", ".release", ".acq_rel"])
    for space in SPACES:
        for operation, kind, function in table:
            arity = 3 if operation == "cas" else 2
            cpp, constraint = register_of(kind)
            for name in ("atom",) if operation in ("exch", "cas") else ("atom", "red"):
                order, scope = next(orders), next(scopes)
                if name == "red" and order in (".acquire", ".acq_rel"):
                    order = ".relaxed"
                # A scope needs an order and the other way round.
                qualifiers = order + (scope or ".gpu") if order else ""
                full = f"{name}{qualifiers}{'.' + space if space else ''}.{operation}.{kind}"
                inputs = ", ".join([address_in(space)] +
                                   [f'"{constraint}"(as<{cpp}>(r.operands[{i}]))' for i in range(1, arity)])
                first = 1 if name == "atom" else 0
                places = ", ".join(f"%{first + i}" for i in range(1, arity))
                begin = f"{SPACES[space][0]}[0] = r.operands[0]; {cpp} old = as<{cpp}>(r.operands[0]); "
                asm = (f'asm volatile("{full} %0, [%1], {places};" : "={constraint}"(old) : {inputs} : "memory"); '
                       if first else f'asm volatile("{full} [%0], {places};" :: {inputs} : "memory"); ')
                code = begin + asm + f"d = bits(old) * 3 + {SPACES[space][0]}[0];"
                rows = [operands_of(kind, arity) for _ in range(24)]
                yield Code(full, code, [(row, (row[0] * 3 + function(*row)) & MASK64) for row in rows])
    # The threads of a warp on one cell, in any order.
    for operation, kind, function in table:
        if operation in ("exch", "cas", "inc", "dec") or kind[0] in "f" or kind[:2] == "bf":
            continue
        cpp, constraint = register_of(kind)
        code = ("Word* cell = cells[threadIdx.x & ~31]; if (lane == 0) *cell = r.operands[0]; __syncwarp(); "
                f'asm volatile("red.shared.{operation}.{kind} [%0], %1;" :: '
                f'"r"(static_cast<unsigned>(__cvta_generic_to_shared(cell))), "{constraint}"(as<{cpp}>(r.operands[1])) '
                ': "memory"); __syncwarp(); d = *cell;')
        lanes = [operands_of(kind, 2) for _ in range(32)]
        total = lanes[0][0]
        for _, value in lanes:
            total = function(total, value)
        yield Code(f"red.shared.{operation}.{kind} by a warp", code, [(row, total) for row in lanes])


def warps(count, make):
    """`make()` gives the operands of each lane of a warp."""
    return [[tuple(row) for row in make()] for _ in range(count)]


def collective_instructions():
    def of_warps(name, code, all_lanes, expected):
        """expected(lanes, mask) → a result a lane. The last operand is the mask; lanes outside do nothing."""
        rows = []
        for lanes in all_lanes:
            mask = lanes[0][-1]
            results = expected(lanes, mask)
            rows += [(row, results[i] if mask >> i & 1 else 0) for i, row in enumerate(lanes)]
        index = len(all_lanes[0][0]) - 1
        guarded = f"const unsigned mask = r.operands[{index}]; if (mask >> lane & 1) {{ {code} }} else d = 0;"
        return Code(name, guarded, rows)

    masks = [0xffffffff, 0x0000ffff, 0xff00ff00, 0x80000001, 0xfffffffe]

    def source_of(mode, lane, b, c):
        b, clamp, segment = b & 31, c & 31, c >> 8 & 31
        most, least = (lane & segment) | (clamp & ~segment & 31), lane & segment
        j = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": least | (b & ~segment & 31)}[mode]
        inside = j >= most if mode == "up" else j <= most
        return (j, 1) if inside else (lane, 0)

    for mode in ("up", "down", "bfly", "idx"):
        for predicate in (False, True):
            def lanes(mode=mode):
                width = DRAW.choice((32, 16, 8, 4, 2))
                c = (32 - width) << 8 | (0 if mode == "up" else 31)
                mask = DRAW.choice((0xffffffff, 0xffffffff, 0xffff, 0xffff0000)) if width <= 16 else 0xffffffff
                # A lane outside of the mask gives nothing: .bfly may leave its segment for one before it.
                same = DRAW.getrandbits(5) if mask == 0xffffffff else DRAW.randrange(width)
                return [(DRAW.getrandbits(32), DRAW.getrandbits(6) if mode == "idx" else same, c, mask)
                        for _ in range(32)]
            def expected(lanes, mask, mode=mode, predicate=predicate):
                results = []
                for lane, (_, b, c, _) in enumerate(lanes):
                    j, inside = source_of(mode, lane, b, c)
                    results.append(lanes[j][0] | (inside << 40 if predicate else 0))
                return results
            to = "x|p" if predicate else "x"
            end = "selp.u32 %1, 1, 0, p;" if predicate else "mov.u32 %1, 0;"
            code = (f'unsigned v, q; asm volatile("{{ .reg .pred p; .reg .b32 x; shfl.sync.{mode}.b32 {to}, %2, %3, %4, %5; '
                    f'mov.b32 %0, x; {end} }}" : "=r"(v), "=r"(q) : "r"(as<unsigned>(r.operands[0])), '
                    '"r"(as<unsigned>(r.operands[1])), "r"(as<unsigned>(r.operands[2])), "r"(mask)); d = v | Word(q) << 40;')
            yield of_warps(f"shfl.sync.{mode}.b32{' with p' if predicate else ''}", code, warps(12, lanes), expected)

    def votes():
        mask, how = DRAW.choice(masks), DRAW.choice(("all", "none", "some"))
        return [({"all": 1, "none": 0}.get(how, DRAW.getrandbits(1)), mask) for _ in range(32)]

    def members(lanes, mask):
        return [row for i, row in enumerate(lanes) if mask >> i & 1]

    tests = {"all": all, "any": any, "uni": lambda votes: len(set(votes)) == 1}
    for name, test in tests.items():
        code = (f'unsigned v; asm volatile("{{ .reg .pred p, q; setp.ne.u32 q, %1, 0; vote.sync.{name}.pred p, q, %2; '
                'selp.u32 %0, 1, 0, p; }" : "=r"(v) : "r"(as<unsigned>(r.operands[0])), "r"(mask)); d = v;')
        yield of_warps(f"vote.sync.{name}.pred", code, warps(16, votes),
                       lambda lanes, mask, t=test: [int(t([row[0] for row in members(lanes, mask)]))] * 32)
    code = ('unsigned v; asm volatile("{ .reg .pred q; setp.ne.u32 q, %1, 0; vote.sync.ballot.b32 %0, q, %2; }" '
            ': "=r"(v) : "r"(as<unsigned>(r.operands[0])), "r"(mask)); d = v;')
    yield of_warps("vote.sync.ballot.b32", code, warps(16, votes),
                   lambda lanes, mask: [sum(row[0] << i for i, row in enumerate(lanes)) & mask] * 32)

    for kind in ("b32", "b64"):
        cpp, constraint = register_of(kind)
        def lanes(kind=kind):
            mask, pool = DRAW.choice(masks), [DRAW.getrandbits(bits_of(kind)) for _ in range(DRAW.choice((1, 1, 3, 9)))]
            return [(DRAW.choice(pool), mask) for _ in range(32)]
        def same(lanes, mask):
            return [sum(1 << j for j in range(32) if mask >> j & 1 and lanes[j][0] == row[0]) for row in lanes]
        given = f'"{constraint}"(as<{cpp}>(r.operands[0])), "r"(mask)'
        yield of_warps(f"match.any.sync.{kind}",
                       f'unsigned v; asm volatile("match.any.sync.{kind} %0, %1, %2;" : "=r"(v) : {given}); d = v;',
                       warps(12, lanes), same)
        def every(lanes, mask):
            one = len({row[0] for row in members(lanes, mask)}) == 1
            return [(mask | 1 << 40) if one else 0] * 32
        yield of_warps(f"match.all.sync.{kind}",
                       f'unsigned v, q; asm volatile("{{ .reg .pred p; match.all.sync.{kind} %0|p, %2, %3; '
                       f'selp.u32 %1, 1, 0, p; }}" : "=r"(v), "=r"(q) : {given}); d = v | Word(q) << 40;',
                       warps(12, lanes), every)
    folds = {("add", "u32"): lambda a, b: a + b, ("add", "s32"): lambda a, b: a + b, ("min", "u32"): min,
             ("max", "u32"): max, ("min", "s32"): min, ("max", "s32"): max, ("and", "b32"): lambda a, b: a & b,
             ("or", "b32"): lambda a, b: a | b, ("xor", "b32"): lambda a, b: a ^ b}
    for (name, kind), function in folds.items():
        def lanes():
            mask = DRAW.choice(masks)
            return [(DRAW.choice(integers(32, 4)[0] + [DRAW.getrandbits(32)] * 8), mask) for _ in range(32)]
        def fold(lanes, mask, f=function, kind=kind):
            values = [signed(row[0], 32) if kind[0] == "s" else row[0] for row in members(lanes, mask)]
            total = values[0]
            for value in values[1:]:
                total = f(total, value)
            return [total & 0xffffffff] * 32
        yield of_warps(f"redux.sync.{name}.{kind}", f'unsigned v; asm volatile("redux.sync.{name}.{kind} %0, %1, %2;" '
                       ': "=r"(v) : "r"(as<unsigned>(r.operands[0])), "r"(mask)); d = v;', warps(12, lanes), fold)


def matrix_instructions():
    elements = {**ELEMENTS, "f64": (64, F64.word), "s4": (4, whole_word(4)), "u4": (4, whole_word(4)),
                "b1": (1, whole_word(1))}
    ranges = {"s8": (-128, 127), "u8": (0, 255), "s4": (-8, 7), "u4": (0, 15), "b1": (0, 1)}

    def mma(m, k, d_kind, a_kind, b_kind, c_kind, operation=""):
        bits = elements[a_kind][0]
        unit = 64 if bits == 64 else 32
        pack = unit // bits
        groups, columns = m // 8, k // (4 * pack)
        saturates, logic = operation == ".satfinite", operation if "popc" in operation else ""
        narrow_c, narrow_d = c_kind == "f16", d_kind == "f16"
        sum_bits = {"f16": 16, "f32": 32, "s32": 32, "f64": 64}
        write = {"f16": F16.word, "f32": F32.word, "f64": F64.word, "s32": lambda v: int(v) & 0xffffffff}
        a_count, b_count = groups * columns, columns
        c_count, d_count = groups * (1 if narrow_c else 2), groups * (1 if narrow_d else 2)
        rows = []
        for _ in range(2):
            draw = lambda kind: DRAW.randint(*ranges.get(kind, (-4, 4)))
            A = [[draw(a_kind) for _ in range(k)] for _ in range(m)]
            B = [[draw(b_kind) for _ in range(8)] for _ in range(k)]
            limit = (1 << 31) - 1 if saturates else 200
            C = [[DRAW.choice((limit - DRAW.randrange(200), -limit + DRAW.randrange(200), DRAW.randrange(-200, 200)))
                  for _ in range(8)] for _ in range(m)]
            D = [[0] * 8 for _ in range(m)]
            for i, j in itertools.product(range(m), range(8)):
                if logic:
                    join = (lambda x, y: x ^ y) if "xor" in logic else (lambda x, y: x & y)
                    D[i][j] = C[i][j] + sum(join(A[i][l], B[l][j]) for l in range(k))
                else:
                    D[i][j] = C[i][j] + sum(A[i][l] * B[l][j] for l in range(k))
                if saturates:
                    D[i][j] = max(-1 << 31, min((1 << 31) - 1, D[i][j]))
            def registers(lane):
                group, thread = lane >> 2, lane & 3
                a, b = [], []
                for i in range(a_count):
                    row, column = group + 8 * (i % groups), i // groups * 4 * pack + thread * pack
                    a.append(sum(elements[a_kind][1](A[row][column + e]) << (bits * e) for e in range(pack)))
                for i in range(b_count):
                    first = i * 4 * pack + thread * pack
                    b.append(sum(elements[b_kind][1](B[first + e][group]) << (bits * e) for e in range(pack)))
                def sums(M, kind, narrow):
                    words = []
                    for i in range(groups * 2):
                        words.append(write[kind](Fraction(M[group + 8 * (i // 2)][thread * 2 + i % 2])))
                    if narrow:
                        words = [words[i] | words[i + 1] << 16 for i in range(0, len(words), 2)]
                    return words
                return a + b + sums(C, c_kind, narrow_c), sums(D, d_kind, narrow_d)
            for which in range(d_count):
                for lane in range(32):
                    operands, results = registers(lane)
                    rows.append((tuple(operands) + (which,), results[which]))
        def kind_of(kind, narrow):
            return ("double", "d") if kind == "f64" else ("float", "f") if kind == "f32" else ("unsigned", "r")
        word = ("double", "d") if bits == 64 else ("unsigned", "r")
        total = a_count + b_count + c_count
        c_type, d_type = kind_of(c_kind, narrow_c), kind_of(d_kind, narrow_d)
        inputs = [f'"{word[1]}"(as<{word[0]}>(r.operands[{i}]))' for i in range(a_count + b_count)]
        inputs += [f'"{c_type[1]}"(as<{c_type[0]}>(r.operands[{i}]))' for i in range(a_count + b_count, total)]
        outputs = ", ".join(f'"={d_type[1]}"(x[{i}])' for i in range(d_count))
        at, groups_text = d_count, []
        for count in (a_count, b_count, c_count):
            groups_text.append("{" + ", ".join(f"%{at + i}" for i in range(count)) + "}")
            at += count
        to = "{" + ", ".join(f"%{i}" for i in range(d_count)) + "}"
        types = f"{d_kind}.{a_kind}.{b_kind}.{c_kind}"
        name = f"mma.sync.aligned.m{m}n8k{k}.row.col{'.satfinite' if saturates else ''}.{types}{logic}"
        code = (f'{d_type[0]} x[{d_count}]; asm volatile("{name} {to}, {", ".join(groups_text)};" : {outputs} : '
                f'{", ".join(inputs)}); d = bits(x[r.operands[{total}]]);')
        return Code(name, code, rows)

    for k in (8, 16):
        for d_kind in ("f16", "f32"):
            yield mma(16, k, d_kind, "f16", "f16", d_kind)
        yield mma(16, k, "f32", "bf16", "bf16", "f32")
    for k in (4, 8):
        yield mma(16, k, "f32", "tf32", "tf32", "f32")
    yield mma(8, 4, "f64", "f64", "f64", "f64")
    for k in (4, 8, 16):
        yield mma(16, k, "f64", "f64", "f64", "f64")
    for size, shapes in ((8, ((8, 16), (16, 16), (16, 32))), (4, ((8, 32), (16, 32), (16, 64)))):
        for (m, k), a_kind, b_kind, operation in itertools.product(shapes, "su", "su", ("", ".satfinite")):
            yield mma(m, k, "s32", a_kind + str(size), b_kind + str(size), "s32", operation)
    for (m, k), operation in itertools.product(((8, 128), (16, 128), (16, 256)), (".xor.popc", ".and.popc")):
        yield mma(m, k, "s32", "b1", "b1", "s32", operation)
    for a_kind, b_kind in itertools.product(("e4m3", "e5m2"), repeat=2):
        yield mma(16, 32, "f32", a_kind, b_kind, "f32")

    # Matrices of 8 × 8 16-bit numbers: lane i holds row i % 8 of the matrix i / 8 in two words.
    tile = "Word (*tile)[4] = cells + (threadIdx.x & ~31); "
    row_address = '"r"(static_cast<unsigned>(__cvta_generic_to_shared(tile[r.operands[2]])))'
    def halves(row):
        return [(row[h // 4] >> (16 * (h % 4))) & 0xffff for h in range(8)]
    for count, trans in itertools.product((1, 2, 4), (False, True)):
        rows = []
        for which in range(count):
            order = list(range(32))
            DRAW.shuffle(order)  # the rows may lie anywhere
            lanes = [(*words_at_random(2), order[i], which) for i in range(32)]
            matrix = [halves(lanes[order[8 * which + i]]) for i in range(8)]
            for lane in range(32):
                i, j = lane >> 2, 2 * (lane & 3)
                low, high = (matrix[j][i], matrix[j + 1][i]) if trans else (matrix[i][j], matrix[i][j + 1])
                rows.append((lanes[lane], low | high << 16))
        name = f"ldmatrix.sync.aligned.m8n8.x{count}{'.trans' if trans else ''}.shared.b16"
        to = ", ".join(f"%{i}" for i in range(count))
        outputs = ", ".join(f'"=r"(x[{i}])' for i in range(count))
        code = (f'{tile}tile[lane][0] = r.operands[0]; tile[lane][1] = r.operands[1]; __syncwarp(); unsigned x[{count}]; '
                f'asm volatile("{name} {{{to}}}, [%{count}];" : {outputs} : {row_address} : "memory"); '
                'd = x[r.operands[3]]; __syncwarp();')
        yield Code(name, code, rows)
        # The other way round: what lies in row `lane` afterwards.
        order = list(range(32))
        DRAW.shuffle(order)
        lanes = [(*words_at_random(2), order[i]) for i in range(32)]
        registers = [[lanes[lane][i // 2] >> (32 * (i % 2)) & 0xffffffff for i in range(count)] for lane in range(32)]
        stored = {}
        for matrix in range(count):
            for i in range(8):
                row = []
                for j in range(8):
                    lane, part = (j * 4 + i // 2, i & 1) if trans else (i * 4 + j // 2, j & 1)
                    row.append(registers[lane][matrix] >> (16 * part) & 0xffff)
                stored[order[8 * matrix + i]] = row
        rows = []
        for lane in range(32):
            row = stored.get(lane, [0] * 8)
            low, high = (sum(h << (16 * i) for i, h in enumerate(row[k:k + 4])) for k in (0, 4))
            rows.append((lanes[lane], mixed([low, high])))
        name = name.replace("ldmatrix", "stmatrix")
        source = ", ".join(f"%{i + 1}" for i in range(count))
        inputs = ", ".join(f'"r"(static_cast<unsigned>(r.operands[{i // 2}] >> {32 * (i % 2)}))' for i in range(count))
        code = (f'{tile}tile[lane][0] = tile[lane][1] = 0; __syncwarp(); asm volatile("{name} [%0], {{{source}}};" :: '
                f'{row_address}, {inputs} : "memory"); __syncwarp(); const Word row[] = {{tile[lane][0], tile[lane][1]}}; '
                'd = mixed(row); __syncwarp();')
        yield Code(name, code, rows)
    lanes = [(DRAW.getrandbits(32),) for _ in range(32)]
    part = lambda i, j: lanes[4 * i + j // 2][0] >> (16 * (j & 1)) & 0xffff
    name = "movmatrix.sync.aligned.m8n8.trans.b16"
    yield Code(name, f'unsigned x; asm volatile("{name} %0, %1;" : "=r"(x) : "r"(as<unsigned>(r.operands[0]))); d = x;',
               [(row, part(2 * (i & 3), i >> 2) | part(2 * (i & 3) + 1, i >> 2) << 16) for i, row in enumerate(lanes)])


def copy_instructions():
    shared = "static_cast<unsigned>(__cvta_generic_to_shared(cells[threadIdx.x]))"
    inverted = "for (int i = 0; i < 4; ++i) cells[threadIdx.x][i] = ~r.operands[i]; "
    source = "for (int i = 0; i < 4; ++i) scratch[at][i] = r.operands[i]; "
    ends = {"wait_all": "cp.async.wait_all;", "groups": "cp.async.commit_group; cp.async.wait_group 0;"}

    def copied(row, size, given):
        data = bytearray(bytes_of([~word & MASK64 for word in row[:4]]))
        data[:size] = bytes_of(row[:4])[:given] + bytes(size - given)
        return mixed(words_of(bytes(data)))

    for (how, size), (end, text), by_register in itertools.product(
            (("ca", 4), ("ca", 8), ("ca", 16), ("cg", 16)), ends.items(), (False, True)):
        rows = []
        for given in range(size + 1) if by_register else [size] * 4:
            row = (*words_at_random(4), given)
            rows.append((row, copied(row, size, given)))
        name = f"cp.async.{how}.shared.global {size}{' with a source size' if by_register else ''}, {end}"
        last = ", %2" if by_register else ""
        code = (f'{inverted}{source}asm volatile("cp.async.{how}.shared.global [%0], [%1], {size}{last}; {text}" :: '
                f'"r"({shared}), "l"(scratch[at]), "r"(as<unsigned>(r.operands[4])) : "memory"); '
                'd = mixed(cells[threadIdx.x]);')
        yield Code(name, code, rows)

    barrier = "const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&bars[threadIdx.x])); "
    wait = ('asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; '
            '@!p bra again; }" :: "r"(bar) : "memory"); ')
    fence = 'asm volatile("fence.proxy.async;" ::: "memory"); '  # what follows is of another proxy
    for size in (16, 32):
        code = (f'{barrier}{inverted}{source}{fence}asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(bar) : "memory"); '
                f'asm volatile("{{ .reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 s, [%0], {size}; }}" :: "r"(bar) : "memory"); '
                'asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], '
                f'{size}, [%2];" :: "r"({shared}), "l"(scratch[at]), "r"(bar) : "memory"); {wait}'
                'd = mixed(cells[threadIdx.x]);')
        rows = [tuple(words_at_random(4)) for _ in range(8)]
        yield Code(f"cp.async.bulk.shared::cluster.global {size}", code, [(row, copied(row, size, size)) for row in rows])
        group = ('asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory"); ')
        out = ("for (int i = 0; i < 4; ++i) { cells[threadIdx.x][i] = r.operands[i]; "
               "scratch[at][i] = ~r.operands[i]; } " + fence)
        code = (f'{out}asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], {size};" :: '
                f'"l"(scratch[at]), "r"({shared}) : "memory"); {group}d = mixed(scratch[at]);')
        yield Code(f"cp.async.bulk.global.shared::cta {size}", code, [(row, copied(row, size, size)) for row in rows])
    reductions = [("add", "u32", lambda a, b: a + b), ("add", "s32", lambda a, b: a + b), ("add", "u64", lambda a, b: a + b),
                  ("min", "u32", min), ("max", "u32", max), ("min", "s32", min), ("max", "s32", max),
                  ("min", "u64", min), ("max", "s64", max), ("and", "b32", lambda a, b: a & b),
                  ("or", "b64", lambda a, b: a | b), ("xor", "b32", lambda a, b: a ^ b),
                  ("inc", "u32", lambda a, b: 0 if a >= b else a + 1),
                  ("dec", "u32", lambda a, b: b if a == 0 or a > b else a - 1)]
    for name, kind, function in reductions:
        bits = bits_of(kind)
        rows = []
        for _ in range(8):
            row = tuple(words_at_random(4))
            both = [bytes_of([~word & MASK64 for word in row]), bytes_of(row)]
            size, result = bits // 8, bytearray()
            for i in range(0, 32, size):
                old, new = (int.from_bytes(data[i:i + size], "little") for data in both)
                if kind[0] == "s":
                    old, new = signed(old, bits), signed(new, bits)
                result += (function(old, new) & ((1 << bits) - 1)).to_bytes(size, "little")
            rows.append((row, mixed(words_of(bytes(result)))))
        full = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.{name}.{kind}"
        code = (f'{out}asm volatile("{full} [%0], [%1], 32;" :: "l"(scratch[at]), "r"({shared}) : "memory"); '
                f'{group}d = mixed(scratch[at]);')
        yield Code(full, code, rows)

    # Phases: each hexadecimal digit of the second operand is a step; tests add a bit to the result.
    def phases(expected, steps):
        pending, bytes_open, phase, result = expected, 0, 0, 0
        for step in steps:
            if step in (0, 1):  # one or two arrivals
                pending -= step + 1
            elif step == 2:
                bytes_open += 16
            elif step == 3:
                bytes_open -= 16
            elif step == 4:  # an arrival that expects bytes
                bytes_open += 16
                pending -= 1
            else:
                result = result << 1 | int(phase != step - 5)
            if pending == 0 and bytes_open == 0:
                phase, pending = phase ^ 1, expected
        return result

    def allowed(expected):
        pending, bytes_open, steps = expected, 0, []
        while len(steps) < 16:
            step = DRAW.randrange(7)
            if step == 3 and bytes_open == 0 or step == 4 and pending < 1 or step in (0, 1) and pending < step + 1:
                continue
            # The phase must not end by an arrival that leaves bytes open, then arrive again: none is pending.
            pending -= {0: 1, 1: 2, 4: 1}.get(step, 0)
            bytes_open += {2: 16, 3: -16, 4: 16}.get(step, 0)
            if pending == 0 and bytes_open == 0:
                pending = expected
            steps.append(step)
        return steps

    rows = []
    for _ in range(96):
        count = DRAW.randint(1, 5)
        steps = allowed(count)
        rows.append(((count, sum(step << (4 * i) for i, step in enumerate(steps))), phases(count, steps)))
    names = ["mbarrier.arrive.shared::cta.b64 s, [%1];", "mbarrier.arrive.shared::cta.b64 s, [%1], 2;",
             "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%1], 16;",
             "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%1], 16;",
             "mbarrier.arrive.expect_tx.shared::cta.b64 s, [%1], 16;"]
    cases = "".join(f'if (step == {i}) asm volatile("{{ .reg .b64 s; {text} }}" : "+r"(x) : "r"(bar) : "memory"); '
                    for i, text in enumerate(names))
    for wait_name in ("test_wait", "try_wait"):
        code = (f'{barrier}unsigned x = 0; d = 0; asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" :: "r"(bar), '
                '"r"(as<unsigned>(r.operands[0])) : "memory"); for (int i = 0; i < 16; ++i) { const int step = '
                f'r.operands[1] >> (4 * i) & 15; {cases}if (step >= 5) {{ asm volatile("{{ .reg .pred p; '
                f'mbarrier.{wait_name}.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }}" : "=r"(x) : "r"(bar), '
                '"r"(step - 5) : "memory"); d = d << 1 | x; } }')
        yield Code(f"mbarrier phases, {wait_name}.parity", code, rows)


# --- matrices that descriptors describe --------------------------------------------------------------------
class SmallFloat:
    """A float of 4 or 6 bits: all of its words are numbers."""

    def __init__(self, exponent_bits, fraction_bits):
        bias = (1 << (exponent_bits - 1)) - 1
        self.words = {}
        for word in reversed(range(1 << (exponent_bits + fraction_bits))):
            exponent, fraction = word >> fraction_bits, word & ((1 << fraction_bits) - 1)
            mantissa = fraction + (1 << fraction_bits if exponent else 0)
            value = Fraction(mantissa) * Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)
            self.words[-value] = word | 1 << (exponent_bits + fraction_bits)
            self.words[value] = word

    def word(self, value):
        return self.words[value]


def whole_word(bits):
    return lambda value: int(value) & ((1 << bits) - 1)


# Bits of an element, and its word for a number.
ELEMENTS = {"f16": (16, F16.word), "bf16": (16, BF16.word), "tf32": (32, F32.word), "e4m3": (8, E4M3.word),
            "e5m2": (8, E5M2.word), "e2m3": (6, SmallFloat(2, 3).word), "e3m2": (6, SmallFloat(3, 2).word),
            "e2m1": (4, SmallFloat(2, 1).word), "s8": (8, whole_word(8)), "u8": (8, whole_word(8))}
SUMS = {"f16": F16.word, "f32": F32.word, "s32": whole_word(32)}


@functools.lru_cache(maxsize=None)
def element_word(kind, quarters):
    return ELEMENTS[kind][1](Fraction(quarters, 4))


@functools.lru_cache(maxsize=None)
def sum_word(kind, numerator, denominator):
    return SUMS[kind](Fraction(numerator, denominator))


def draw_matrix(rows, depth, kind, limit):
    """In quarters, so that all sums are exact: floats of up to 8 bits are multiples of 1/2, others whole."""
    if kind in ("s8", "u8"):
        low, high = (-128, 127) if kind == "s8" else (0, 255)
        return [[4 * DRAW.randint(low, high) for _ in range(depth)] for _ in range(rows)]
    unit = 2 if kind[0] == "e" else 4
    return [[unit * DRAW.randint(-limit, limit) for _ in range(depth)] for _ in range(rows)]


class Tile:
    """A matrix in shared memory, as the canonical layouts of 9.7.15.5.1.2 and 9.7.16.3.3 have it.

    units: pieces of 16 bytes that a swizzle mixes (8, 4, 2; 1: no swizzle). mn: neighbours along M or N are
    adjacent, not those along K. size: bytes of an element. turned: the other of the two dense arrangements.
    """

    def __init__(self, rows, row_bytes, size, units, mn, turned=False):
        self.size, self.units, self.mn = size, units, mn
        across = -(-rows * size // (16 * units)) if mn else -(-rows // 8)  # atoms along M or N
        along = -(-row_bytes // size // 8) if mn else row_bytes // 16 if units == 1 else 1
        atom = 128 * units
        first, second = (atom * along, atom) if turned else (atom, atom * across)  # steps across, along
        swaps = mn and units > 1  # which of the two is the leading offset
        self.leading, self.stride = (first, second) if swaps else (second, first)
        self.bytes = atom * across * along

    def place(self, row, k):
        size, units = self.size, self.units
        if not self.mn:
            piece, rest = divmod(k * size, 16)
            at = row % 8 * 16 * units + row // 8 * self.stride + rest
            at += piece * (self.leading if units == 1 else 16)
        else:
            side = 16 // size
            step_across, step_along = self.leading, self.stride
            if units == 1:
                step_across, step_along = step_along, step_across
            at = row % side * size + row // side % units * 16 + row // (side * units) * step_across
            at += k % 8 * 16 * units + k // 8 * step_along
        return at ^ (at >> 7 & (units - 1)) << 4

    def image(self, numbers, kind, packed=False):
        """Pieces of 16 bytes, by where they begin.

        numbers: row by row, in quarters. packed: two elements of 4 bits in a byte, without padding.
        """
        bits = ELEMENTS[kind][0]
        pieces = {}  # of 16 bytes, by where they begin

        def write(at, value):
            pieces.setdefault(at // 16 * 16, bytearray(16))[at % 16] |= value
        for row, values in enumerate(numbers):
            for k, value in enumerate(values):
                word = element_word(kind, value)
                if bits >= 8:
                    at = self.place(row, k)
                    for i in range(self.size):
                        write(at + i, word >> 8 * i & 255)
                    continue
                for b in range(bits):  # sixteen elements in 16 bytes, at their beginning
                    bit = k * 4 + b if packed else k % 16 * bits + b
                    at = self.place(row, bit // 8 + (0 if packed else k // 16 * 16))
                    write(at, (word >> b & 1) << bit % 8)
        return pieces

    def descriptor(self, start, modes, fixed):
        return start >> 4 | self.leading >> 4 << 16 | self.stride >> 4 << 32 | fixed | modes[self.units]


def products(left, right):
    """Of rows with rows, in sixteenths."""
    return [[sum(map(operator.mul, row, column)) for column in right] for row in left]


def old_value(thread, i):
    """What an accumulator holds before; the device computes the same."""
    return (thread * 5 + i * 3) % 13 - 6


def pieces_for_threads(pieces, count):
    """For each of 128 threads: where its pieces go, in units of 16 bytes, four to a word; then the pieces."""
    all_pieces = sorted(pieces.items())
    parts = []
    for t in range(128):
        mine = all_pieces[t * count:(t + 1) * count]
        places = [at // 16 for at, _ in mine] + [0xffff] * (count - len(mine))
        words = [sum(place << 16 * i for i, place in enumerate(places[k:k + 4])) for k in range(0, count, 4)]
        parts.append(words + words_of(b"".join(bytes(piece) for _, piece in mine).ljust(16 * count, b"\0")))
    return parts


MATRIX_PRELUDE = f"""
__device__ int old_value(int thread, int i) {{ return (thread * 5 + i * 3) % 13 - 6; }}
__device__ unsigned old_half(int thread, int i) {{
  constexpr unsigned short kHalves[] = {{{", ".join(hex(F16.word(Fraction(v))) for v in range(-6, 7))}}};
  return kHalves[old_value(thread, i) + 6];
}}
__device__ unsigned shared_address(const void* p) {{
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}}
/// Each thread writes its part of the matrices into shared memory, for the asynchronous proxy.
template <int count> __device__ void write_image(Word* image, const Word* part) {{
  for (int i = 0; i < count; ++i) {{
    const Word place = part[i / 4] >> (16 * (i % 4)) & 0xffff;
    for (int half = 0; half < 2 && place != 0xffff; ++half)
      image[2 * place + half] = part[(count + 3) / 4 + 2 * i + half];
  }}
  asm volatile("fence.proxy.async;" ::: "memory");
  __syncthreads();
}}
"""


def wgmma_instructions():
    """9.7.15.5: each type, layout and modifier; 128 threads a block, each with a part of the matrices."""
    modes = {1: 0, 8: 1 << 62, 4: 2 << 62, 2: 3 << 62}

    def multiply(a_kind, b_kind, d_kind, n, registers=False, negate=(1, 1), mn=(0, 0), saturates=False):
        signs = negate[0] * negate[1]
        bits = ELEMENTS[a_kind][0]
        size, depth = bits // 8, 256 // bits
        pack, count = 4 // size, n // (4 if d_kind == "f16" else 2)
        name = f"wgmma.mma_async.sync.aligned.m64n{n}k{depth}{'.satfinite' if saturates else ''}"
        name += f".{d_kind}.{a_kind}.{b_kind}"
        rows, blocks = [], []
        for i, (units_a, units_b) in enumerate(((1, 8), (2, 4), (4, 2), (8, 1))):
            A, B = draw_matrix(64, depth, a_kind, 4), draw_matrix(n, depth, b_kind, 4)
            tile_a = Tile(64, 32, size, units_a, mn[0], i % 2)
            tile_b = Tile(n, 32, size, units_b, mn[1], i > 1)
            blocks.append((A, B, tile_a, tile_b, i != 1))
        start_b = 0 if registers else -(-max(block[2].bytes for block in blocks) // 1024) * 1024
        image_bytes = start_b + max(block[3].bytes for block in blocks)
        pieces = (0 if registers else 1) + -(-n // 64)  # of a thread
        words = -(-pieces // 4) + 2 * pieces
        for A, B, tile_a, tile_b, accumulates in blocks:
            image = {} if registers else tile_a.image(A, a_kind)
            image.update((start_b + at, piece) for at, piece in tile_b.image(B, b_kind).items())
            parts = pieces_for_threads(image, pieces)
            sums = products(A, B)
            near_limit = (1 << 31) - 9 if saturates else 0
            for t in range(128):
                row, column = t // 32 * 16 + t % 32 // 4, t % 4 * 2
                operands = parts[t] + [tile_a.descriptor(0, modes, 0), tile_b.descriptor(start_b, modes, 0)]
                operands.append(int(accumulates))
                for i in range(4 if registers else 0):  # rows r and r + 8, then the columns behind
                    elements = A[row + i % 2 * 8][i // 2 * 4 * pack + t % 4 * pack:][:pack]
                    words_of_a = [element_word(a_kind, value) for value in elements]
                    operands.append(sum(word << bits * e for e, word in enumerate(words_of_a)))
                results = []
                for i in range(n // 2):
                    value = signs * sums[row + i // 2 % 2 * 8][column + i // 4 * 8 + i % 2]
                    if accumulates:
                        value += 16 * (old_value(t, i) + (near_limit if i % 2 else -near_limit))
                    if saturates:
                        value = 16 * max(-1 << 31, min((1 << 31) - 1, value // 16))
                    results.append(sum_word(d_kind, value, 16))
                if d_kind == "f16":
                    results = [results[i] | results[i + 1] << 16 for i in range(0, len(results), 2)]
                rows.append((tuple(operands), mixed(results)))
        old = "old_value(threadIdx.x, i)" + (" + (i % 2 ? 2147483639 : -2147483639)" if saturates else "")
        if d_kind == "f16":
            old = "old_half(threadIdx.x, 2 * i) | old_half(threadIdx.x, 2 * i + 1) << 16"
        kind, constraint = ("float", "f") if d_kind == "f32" else ("unsigned", "r")
        outputs = ", ".join(f'"+{constraint}"(x[{i}])' for i in range(count))
        at = count
        a_text = "{" + ", ".join(f"%{at + i}" for i in range(4)) + "}" if registers else f"%{at}"
        inputs = ['"l"(a)']
        if registers:
            inputs = [f'"r"(static_cast<unsigned>(r.operands[{words + 3 + i}]))' for i in range(4)]
        at += len(inputs)
        immediates = "" if d_kind == "s32" else f", {negate[0]}, {negate[1]}"
        if bits == 16:
            immediates += "".join(f", {int(flag)}" for flag in (mn[1:] if registers else mn))
        to = ", ".join(f"%{i}" for i in range(count))
        text = (f"{{ .reg .pred p; setp.ne.b32 p, %{at + 1}, 0; {name} {{{to}}}, {a_text}, %{at}, "
                f"p{immediates}; }}")
        inputs += ['"l"(b)', f'"r"(static_cast<unsigned>(r.operands[{words + 2}]))']
        code = (f"alignas(1024) __shared__ Word image[{image_bytes // 8}]; "
                f"write_image<{pieces}>(image, r.operands); "
                "const Word base = (shared_address(image) & 0x3ffff) >> 4; "
                f"const Word a = r.operands[{words}] + base, b = r.operands[{words + 1}] + base; (void)a; "
                f"{kind} x[{count}]; "
                f"for (int i = 0; i < {count}; ++i) x[i] = {old}; "
                'asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); '
                f'asm volatile("{text}" : {outputs} : {", ".join(inputs)} : "memory"); '
                'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); '
                'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory"); '
                "d = mixed(x);")
        detail = [f"{which} transposed" for which, flag in zip("AB", mn) if flag]
        detail += [f"{which} negated" for which, flag in zip("AB", negate) if flag < 0]
        detail += ["A in registers"] * registers
        return Code(", ".join([name] + detail), code, rows)

    kinds = [("f16", "f16", "f16"), ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32")]
    kinds += [(a, b, d) for a in ("e4m3", "e5m2") for b in ("e4m3", "e5m2") for d in ("f16", "f32")]
    kinds += [(a, b, "s32") for a in ("s8", "u8") for b in ("s8", "u8")]
    for a_kind, b_kind, d_kind in kinds:
        for n in (8, 48 if d_kind == "s32" else 40):  # 8-bit integers: N = 8, 16, 24, then steps of 16
            yield multiply(a_kind, b_kind, d_kind, n)
        yield multiply(a_kind, b_kind, d_kind, 32, registers=True, negate=(1 if d_kind == "s32" else -1, 1))
        if d_kind == "s32":
            yield multiply(a_kind, b_kind, d_kind, 16, saturates=True)
        else:
            yield multiply(a_kind, b_kind, d_kind, 24, negate=(1, -1))
        if ELEMENTS[a_kind][0] == 16:
            for mn, negate in (((False, True), (1, 1)), ((True, False), (-1, -1)), ((True, True), (1, 1))):
                yield multiply(a_kind, b_kind, d_kind, 64, mn=mn, negate=negate)
            yield multiply(a_kind, b_kind, d_kind, 64, registers=True, mn=(False, True))
    for a_kind, d_kind, n in (("bf16", "f32", 256), ("f16", "f16", 256), ("tf32", "f32", 128),
                              ("e4m3", "f32", 128), ("s8", "s32", 256)):
        yield multiply(a_kind, a_kind, d_kind, n)


wgmma_instructions.prelude = MATRIX_PRELUDE


TENSOR_PRELUDE = MATRIX_PRELUDE + """
/// The 512 columns of tensor memory, from thread 0 to 127 of a block. d: the address.
struct TensorColumns {
  unsigned d;
  __device__ explicit TensorColumns(unsigned* place) {
    if (threadIdx.x < 32)
      asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 512;"
                   :: "r"(shared_address(place)) : "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    d = *place;
  }
  __device__ unsigned mine(unsigned column) const { return d + ((threadIdx.x & 96) << 16) + column; }
  __device__ void store(unsigned column, unsigned word) const {
    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" :: "r"(mine(column)), "r"(word));
  }
  __device__ unsigned load(unsigned column) const {
    unsigned word;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(mine(column)));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    return word;
  }
  __device__ void stored() const {
    asm volatile("tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  }
  __device__ Word mixed_columns(unsigned count) const {
    Word sum = 0;
    for (unsigned c = 0; c < count; ++c) sum += Word(load(c)) * (2 * c + 1);
    return sum;
  }
  __device__ void leave() const {
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
    __syncthreads();
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
    if (threadIdx.x < 32) {
      asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 512;" :: "r"(d));
      asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
    }
  }
};
__device__ unsigned cell(unsigned lane, unsigned column) {
  return (lane * 259 + column * 5 & 0xffff) << 16 | (column * 131 + lane * 7 + 3 & 0xffff);
}
/// What an accumulator of type f16, f32 or s32 holds before.
__device__ unsigned old_word(unsigned lane, unsigned column, int type) {
  if (type == 0) return old_half(lane, column);
  return type == 1 ? __float_as_uint(old_value(lane, column)) : unsigned(old_value(lane, column));
}
__device__ void begin(Word* barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" :: "r"(shared_address(barrier)) : "memory");
}
__device__ void commit(Word* barrier) {
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];"
               :: "r"(shared_address(barrier)) : "memory");
}
__device__ void await(Word* barrier) {
  asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }"
               :: "r"(shared_address(barrier)) : "memory");
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}
"""


def tensor_moves():
    """tcgen05.ld, tcgen05.st: figures 183 to 187."""
    # Registers at most, columns of a repetition, registers of one; where a thread's register lies: lane and
    # column, from the warp's first.
    fragments = {"32x32b": (128, 1, 1, lambda t, r: (t, r)),
                 "16x64b": (128, 2, 1, lambda t, r: (t % 2 * 8 + t // 4, t // 2 % 2 + 2 * r)),
                 "16x128b": (64, 4, 2, lambda t, r: (t // 4 + r % 2 * 8, t % 4 + r // 2 * 4)),
                 "16x256b": (32, 8, 4,
                             lambda t, r: (t // 4 + r // 2 % 2 * 8, t % 4 * 2 + r % 2 + r // 4 * 8)),
                 "16x32bx2": (128, 1, 1, lambda t, r: (t % 16, r))}

    def held(lane, column):  # `cell()` of the program
        return (lane * 259 + column * 5 & 0xffff) << 16 | (column * 131 + lane * 7 + 3 & 0xffff)

    def register(t, r):
        return t * 0x10003 + r * 0x2000d + 9 & 0xffffffff

    def move(shape, num, pack, store):
        _, width, each, fragment = fragments[shape]
        registers, columns, split = num * each, num * width * (2 if pack else 1), 0
        if shape == "16x32bx2":  # two accesses, so many columns apart
            split = columns + (3 if 2 * columns + 3 <= 512 else 0)
            columns += split
        rows = []
        for half in (0,) if shape == "32x32b" else (0, 16):
            loaded, memory = [[] for _ in range(128)], {}
            for t, r in itertools.product(range(128), range(registers)):
                lane, column = fragment(t % 32, r)
                lane += t // 32 * 32 + half
                column = column * (2 if pack else 1) + (split if t % 32 >= 16 else 0)
                if pack:  # the low halves of two columns
                    loaded[t].append(held(lane, column) & 0xffff | (held(lane, column + 1) & 0xffff) << 16)
                    memory[lane, column] = register(t, r) & 0xffff
                    memory[lane, column + 1] = register(t, r) >> 16
                else:
                    loaded[t].append(held(lane, column))
                    memory[lane, column] = register(t, r)
            for t in range(128):
                left = [memory.get((t, c), held(t, c)) for c in range(columns)] if store else []
                rows.append(((half,), mixed(left if store else loaded[t])))
        what, modifier = ("st", ".unpack::16b") if store else ("ld", ".pack::16b")
        name = f"tcgen05.{what}.sync.aligned.{shape}.x{num}{modifier if pack else ''}.b32"
        immediate = f", {split}" if split else ""
        code = (f"__shared__ unsigned place; const TensorColumns tmem(&place); unsigned x[{registers}]; "
                f"for (unsigned c = 0; c < {columns}; ++c) tmem.store(c, cell(threadIdx.x, c)); "
                "tmem.stored(); "
                "const unsigned from = tmem.mine(0) + (static_cast<unsigned>(r.operands[0]) << 16); ")
        if store:
            inputs = ", ".join(f'"r"(x[{i}])' for i in range(registers))
            places = ", ".join(f"%{i + 1}" for i in range(registers))
            code += (f"for (unsigned i = 0; i < {registers}; ++i) "
                     "x[i] = threadIdx.x * 0x10003 + i * 0x2000d + 9; "
                     f'asm volatile("{name} [%0]{immediate}, {{{places}}};" :: "r"(from), {inputs}); '
                     f"tmem.stored(); d = tmem.mixed_columns({columns}); ")
        else:
            outputs = ", ".join(f'"=r"(x[{i}])' for i in range(registers))
            places = ", ".join(f"%{i}" for i in range(registers))
            code += (f'asm volatile("{name} {{{places}}}, [%{registers}]{immediate};" : '
                     f'{outputs} : "r"(from)); '
                     'asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory"); d = mixed(x); ')
        return Code(name, code + "tmem.leave();", rows)

    for shape, pack, store in itertools.product(fragments, (False, True), (False, True)):
        for i in range(fragments[shape][0].bit_length()):
            yield move(shape, 1 << i, pack, store)


@dataclasses.dataclass
class Product:
    """The operands of one tcgen05.mma: types and sizes, units of the swizzles, fields of the descriptors."""
    a: str
    b: str
    d: str
    m: int
    n: int
    units_a: int
    units_b: int
    mn_a: bool = False
    mn_b: bool = False
    turned: bool = False
    accumulates: bool = True
    negate_a: bool = False
    negate_b: bool = False
    saturates: bool = False
    selector: int = 0  # of the metadata's column
    shift: int = 0     # of B's columns, for .ws
    mask: tuple = ()   # start counts, first spans, columns used, columns that are zeros
    id_a: int = 0      # of the scale factors
    id_b: int = 0
    powers: bool = True  # UE8M0, not UE4M3

    def with_fields(self, **fields):
        return dataclasses.replace(self, **fields)

    def zero_columns(self):
        """Which columns count as zeros, as the examples of 9.7.16.4.3 have it."""
        if not self.mask:
            return [False] * self.n
        starts, firsts, used, zeros = self.mask
        parts, result = 128 // self.m, []
        for part in range(parts):
            cycle = [False] * used + [True] * zeros
            if firsts[part]:
                cycle = cycle[used:] + cycle[:used]
            result += (cycle * (self.n + 1))[starts[part]:starts[part] + self.n // parts]
        return result

    def mask_descriptor(self):
        """Table 45."""
        if not self.mask:
            return self.shift << 56
        starts, firsts, used, zeros = self.mask
        word = self.shift << 56 | used - 1 << 48 | zeros - 1 << 40 | 1 << 39
        word |= sum(start << 8 * i for i, start in enumerate(starts))
        return word | sum(first << 32 + i for i, first in enumerate(firsts))


TENSOR_TYPES = {"f16": {"f16": 0, "bf16": 1}, "tf32": {"tf32": 2}, "i8": {"u8": 0, "s8": 1},
                "mxf4": {"e2m1": 1},
                "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}}
TENSOR_TYPES["mxf8f6f4"], TENSOR_TYPES["mxf4nvf4"] = TENSOR_TYPES["f8f6f4"], TENSOR_TYPES["mxf4"]
TENSOR_SUMS = {"f16": 0, "f32": 1, "s32": 2}
COLUMN_A, COLUMN_SCALE_A, COLUMN_SCALE_B, COLUMN_INDICES = 256, 264, 272, 280  # D's are before


@dataclasses.dataclass
class Multiply:
    """One way to write tcgen05.mma. scales: factors of a row along K."""
    kind: str
    ws: bool = False
    sparse: bool = False
    in_tensor_memory: bool = False  # A
    scales: int = 0
    vector: str = ""
    collector: str = ""
    disables: bool = False  # lanes of D, and scales D by 2 ** -3
    zeros: bool = False     # has a zero-column mask

    def __post_init__(self):
        self.four = self.kind in ("mxf4", "mxf4nvf4")
        self.modes = {1: 0, 8: 2 << 61, 4: 4 << 61, 2: 6 << 61}

    def name(self):
        return (f"tcgen05.mma{'.ws' if self.ws else ''}{'.sp' if self.sparse else ''}.cta_group::1"
                f".kind::{self.kind}{'.block_scale' if self.scales else ''}{self.vector}{self.collector}")

    def lane(self, product, row):
        """Layout F scatters 64 rows; the others do not."""
        return row // 16 * 32 + row % 16 if product.m == 64 and not self.ws else row

    def instruction(self, product):
        """Tables 42 to 44."""
        codes, p = TENSOR_TYPES[self.kind], product
        word = self.sparse << 2 | codes[p.a] << 7 | codes[p.b] << 10 | p.n // 8 << 17
        word |= p.negate_a << 13 | p.negate_b << 14 | p.mn_a << 15 | p.mn_b << 16
        if self.scales:
            return word | p.id_b << 4 | p.powers << 23 | p.m // 128 << 27 | p.id_a << 29
        most_shift = next(i for i, most in enumerate((0, 8, 16, 32)) if p.shift <= most)
        word |= p.selector | p.saturates << 3 | TENSOR_SUMS[p.d] << 4
        return word | p.m // 16 << 24 | most_shift << 30

    def a_with_zeros(self, product, stored, words):
        """A sparse A, and its indices into `words`: 9.7.16.10.8.2 and .3, figures 263 and 267."""
        unit = 2 if self.four else 1  # elements that stay together
        whole = [[0] * 2 * len(row) for row in stored]
        for row, group in itertools.product(range(len(stored)), range(len(stored[0]) // (2 * unit))):
            places = DRAW.choice([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 1), (2, 3)])
            for i in range(2 * unit):
                at = (group * 4 + places[i // unit]) * unit + i % unit
                whole[row][at] = stored[row][group * 2 * unit + i]
            lane, column, bit = row, group // 8, group % 8 * 4
            if self.kind == "f16":  # rows r and r + 8 share words
                lane = row // 16 * 16 + row % 8 + group // 4 * 8
                column, bit = product.selector, row // 8 % 2 * 16 + group % 4 * 4
            at = lane, COLUMN_INDICES + column
            words[at] = words.get(at, 0) | (places[0] | places[1] << 2) << bit
        return whole

    def scaled(self, product, matrix, first, byte, words):
        """A matrix with its scale factors, in halves; and these into `words`: 9.7.16.10.7."""
        # UE8M0: 1/2, 1, 2; UE4M3: 1, 1.5, 2, 3
        codes = {1: 126, 2: 127, 4: 128} if product.powers else {2: 0x38, 3: 0x3c, 4: 0x40, 6: 0x44}
        result = []
        for row, values in enumerate(matrix):
            factors = [DRAW.choice(sorted(codes)) for _ in range(self.scales)]
            for s, quarter in itertools.product(range(self.scales), range(4)):
                at = quarter * 32 + row % 32, first + row // 32
                words[at] = words.get(at, 0) | codes[factors[s]] << 8 * (byte + s)
            result.append([value * factors[k * self.scales // len(values)] for k, value in enumerate(values)])
        return result

    def case(self, p):
        """Tiles of A and B, pieces of their images, words of tensor memory by lane and column; D's too."""
        bits, words = ELEMENTS[p.a][0], {}
        stored = 64 if self.four else 256 // max(8, bits)
        depth, limit = stored * (2 if self.sparse else 1), 2 if p.d == "f16" else 4
        A, B = draw_matrix(p.m, stored, p.a, limit), draw_matrix(p.n + p.shift, depth, p.b, limit)
        size_a, size_b = (max(1, ELEMENTS[kind][0] // 8) for kind in (p.a, p.b))
        tile_a = Tile(p.m, 32, size_a, p.units_a, p.mn_a, p.turned)
        tile_b = Tile(p.n + p.shift, 64 if self.sparse else 32, size_b, p.units_b, p.mn_b, p.turned)
        image_a = {} if self.in_tensor_memory else tile_a.image(A, p.a, self.four)
        if self.in_tensor_memory:  # in bytes 00SEEM00 and 00xxxxxx, or two to a byte: 9.7.16.10.4.3 and .5
            width = 4 if self.four else max(8, bits)
            for row, k in itertools.product(range(p.m), range(stored)):
                at = self.lane(p, row), COLUMN_A + k * width // 32
                word = element_word(p.a, A[row][k]) << (2 if bits == 4 and not self.four else 0)
                words[at] = words.get(at, 0) | word << k * width % 32
        left = self.a_with_zeros(p, A, words) if self.sparse else A
        right = [[0] * depth if zero else row for row, zero in zip(B[p.shift:], p.zero_columns())]
        denominator = 16
        if self.scales:
            left = self.scaled(p, left, COLUMN_SCALE_A, p.id_a, words)
            right = self.scaled(p, right, COLUMN_SCALE_B, p.id_b, words)
            denominator *= 4
        sums, sign = products(left, right), -1 if p.negate_a != p.negate_b else 1
        part, results = p.n * p.m // 128 if self.ws else p.n, {}  # layouts E and G: columns in parts
        for row, column in itertools.product(range(p.m), range(p.n)):
            lane, at = self.lane(p, row) + column // part * p.m, column % part
            if self.disables and 32 <= lane < 64 and 0xff00ff >> lane - 32 & 1:
                continue
            value = sign * sums[row][column]
            if p.accumulates:
                value += old_value(lane, at) * (denominator // 8 if self.disables else denominator)
            if p.saturates:
                value = denominator * max(-1 << 31, min((1 << 31) - 1, value // denominator))
            results[lane, at] = sum_word(p.d, value, denominator)
        return p, tile_a, tile_b, image_a, tile_b.image(B, p.b, self.four), words, results

    def columns(self):
        """Of tensor memory, that each thread fills before."""
        result = [*range(COLUMN_A, COLUMN_A + 8)] if self.in_tensor_memory else []
        if self.scales:
            result += [*range(COLUMN_SCALE_A, COLUMN_SCALE_A + 4), *range(COLUMN_SCALE_B, COLUMN_SCALE_B + 8)]
        return result + ([COLUMN_INDICES, COLUMN_INDICES + 1] if self.sparse else [])

    def assembly(self):
        """Operands: 0 D, 1 and 2 the descriptors, 3 the instruction's, 4 whether D is added, 5 the mask's."""
        text = f"{{ .reg .pred p; setp.ne.b32 p, %4, 0; {self.name()} [%0], "
        text += ("[%6]" if self.in_tensor_memory else "%1") + ", %2, "
        text += ("[%9], " if self.sparse else "") + "%3, "
        text += "[%7], [%8], " if self.scales else "{%7, %8, %7, %7}, " if self.disables else ""
        return text + "p" + (", 3" if self.disables else "") + (", %5" if self.zeros else "") + "; }"

    def program(self, given):
        cases = [self.case(product) for product in given]
        start_b = -(-max(tile_a.bytes for _, tile_a, *_ in cases) // 1024) * 1024
        image_bytes = start_b + max(tile_b.bytes for _, _, tile_b, *_ in cases)
        images = [{**image_a, **{start_b + at: piece for at, piece in image_b.items()}}
                  for _, _, _, image_a, image_b, _, _ in cases]
        pieces = max(-(-len(image) // 128) for image in images)  # of a thread
        first = -(-pieces // 4) + 2 * pieces                     # operand behind them
        columns, rows = self.columns(), []
        for image, (p, tile_a, tile_b, _, _, words, results) in zip(images, cases):
            parts, fixed = pieces_for_threads(image, pieces), 1 << 46
            fields = self.instruction(p) | p.accumulates << 32 | TENSOR_SUMS[p.d] << 33 | p.n << 36
            for t in range(128):
                row = parts[t] + [tile_a.descriptor(0, self.modes, fixed),
                                  tile_b.descriptor(start_b, self.modes, fixed), fields, p.mask_descriptor()]
                mine = [words.get((t, column), 0) for column in columns]
                row += [mine[i] | mine[i + 1] << 32 for i in range(0, len(mine), 2)]
                left = [results.get((t, c), sum_word(p.d, old_value(t, c), 1)) for c in range(p.n)]
                rows.append((tuple(row), mixed(left)))
        fill = ""
        if columns:
            fill = (f"constexpr unsigned columns[] = {{{', '.join(map(str, columns))}}}; "
                    f"for (int i = 0; i < {len(columns)}; ++i) tmem.store(columns[i], "
                    f"static_cast<unsigned>(r.operands[{first + 4} + i / 2] >> (32 * (i % 2)))); ")
        fields = f"r.operands[{first + 2}]"
        others = ("tmem.d + 264", "tmem.d + 272") if self.scales else ("0", "0xff00ff")
        inputs = (f'"r"(tmem.d), "l"(a), "l"(b), "r"(static_cast<unsigned>({fields})), '
                  f'"r"(static_cast<unsigned>({fields} >> 32 & 1)), "l"(r.operands[{first + 3}]), '
                  f'"r"(tmem.d + 256), "r"({others[0]}), "r"({others[1]}), "r"(tmem.d + 280)')
        code = (f"alignas(1024) __shared__ Word image[{image_bytes // 8}]; __shared__ Word barrier; "
                "__shared__ unsigned place; if (threadIdx.x == 0) begin(&barrier); "
                f"write_image<{pieces}>(image, r.operands); const TensorColumns tmem(&place); "
                "const Word base = (shared_address(image) & 0x3ffff) >> 4; "
                f"const Word a = r.operands[{first}] + base, b = r.operands[{first + 1}] + base; (void)a; "
                f"const unsigned width = {fields} >> 36; "
                "for (unsigned c = 0; c < width; ++c) "
                f"tmem.store(c, old_word(threadIdx.x, c, {fields} >> 33 & 3)); "
                f"{fill}tmem.stored(); if (threadIdx.x == 0) {{ "
                f'asm volatile("{self.assembly()}" :: {inputs} : "memory"); commit(&barrier); }} '
                "await(&barrier); d = tmem.mixed_columns(width); tmem.leave();")
        detail = [self.name()] + ["A in tensor memory"] * self.in_tensor_memory
        detail += ["lanes disabled, D scaled"] * self.disables + ["zero columns"] * self.zeros
        return Code(", ".join(detail), code, rows)


def tensor_multiplications():
    """tcgen05.mma of one block."""
    halves = [Product("f16", "f16", "f32", 128, 32, 1, 8),
              Product("bf16", "bf16", "f32", 128, 16, 2, 4, negate_a=True),
              Product("f16", "f16", "f16", 64, 24, 4, 2, negate_b=True),
              Product("bf16", "f16", "f32", 64, 8, 8, 1, accumulates=False, turned=True),
              Product("bf16", "bf16", "f32", 128, 64, 8, 4, mn_a=True, mn_b=True),
              Product("f16", "f16", "f32", 64, 64, 1, 8, mn_a=True, mn_b=True, turned=True),
              Product("bf16", "bf16", "f32", 128, 256, 8, 1)]
    singles = [Product("tf32", "tf32", "f32", 128, 32, 1, 8),
               Product("tf32", "tf32", "f32", 64, 16, 4, 2, negate_a=True, turned=True),
               Product("tf32", "tf32", "f32", 128, 40, 8, 4, accumulates=False)]
    pairs = itertools.product(TENSOR_TYPES["f8f6f4"], repeat=2)
    narrow = [Product(a, b, "f32" if i % 5 else "f16", 128 if i % 3 else 64, 32, (1, 2, 4, 8)[i % 4],
                      (8, 4, 1)[i % 3], negate_a=i % 2) for i, (a, b) in enumerate(pairs)]
    narrow += [Product("e4m3", "e5m2", "f32", 128, 32, 8, 2, mn_a=True, mn_b=True),
               Product("e5m2", "e4m3", "f32", 64, 64, 1, 4, mn_b=True, accumulates=False)]
    pairs = itertools.product(("u8", "s8"), repeat=2)
    whole = [Product(a, b, "s32", 128 if i % 2 else 64, 32, (1, 2, 4, 8)[i], (8, 4, 2, 1)[i],
                     saturates=i == 1) for i, (a, b) in enumerate(pairs)]
    whole += [Product("s8", "u8", "s32", 128, 16, 4, 4, mn_a=True, mn_b=True)]
    for kind, cases in (("f16", halves), ("tf32", singles), ("f8f6f4", narrow), ("i8", whole)):
        yield Multiply(kind).program(cases)
        collector = {"f16": ".collector::a::fill", "tf32": ".collector::a::lastuse"}.get(kind, "")
        k_major = [case for case in cases if not case.mn_a]
        yield Multiply(kind, in_tensor_memory=True, collector=collector).program(k_major)
        # Metadata is known for 128 rows; 64 bytes of B do not fit 32-byte swizzling.
        known = [case for case in cases if case.m == 128 and (case.units_b != 2 or case.mn_b)]
        if kind == "tf32":
            continue
        selected = [case.with_fields(selector=i % 2 if kind == "f16" else 0) for i, case in enumerate(known)]
        yield Multiply(kind, sparse=True).program(selected)
        k_major = [case for case in selected if not case.mn_a]
        yield Multiply(kind, sparse=True, in_tensor_memory=True).program(k_major)
    yield Multiply("f16", disables=True).program(halves[:4])

    # Weight-stationary: M = 32, 64 and 128 have layouts G, E and D.
    sizes = list(itertools.product((32, 64, 128), (64, 128)))
    masks = [((128, 64), (0, 0, 0, 0), (0, 0, 0, 0), 4, 3, 0),
             ((64, 128), (0, 0, 0, 0), (1, 0, 0, 0), 4, 3, 0),
             ((32, 128), (0, 1, 2, 1), (1, 1, 0, 0), 4, 3, 2),
             ((128, 128), (0, 0, 0, 0), (0, 0, 0, 0), 1, 256, 16),
             ((32, 256), (3, 0, 9, 29), (0, 1, 1, 0), 30, 10, 0),
             ((64, 64), (0, 2, 0, 1), (1, 1, 0, 1), 1, 5, 8)]
    for kind, (a, b, d), collector in (("f16", ("bf16", "f16", "f32"), ".collector::b0::discard"),
                                       ("tf32", ("tf32", "tf32", "f32"), ".collector::b1::fill"),
                                       ("f8f6f4", ("e4m3", "e2m1", "f32"), ".collector::b2::use"),
                                       ("i8", ("s8", "u8", "s32"), ".collector::b3::lastuse")):
        cases = [Product(a, b, d, m, n, (1, 8, 4)[i % 3], (8, 2, 1)[i % 3], accumulates=i % 2 == 0)
                 for i, (m, n) in enumerate(sizes)]
        yield Multiply(kind, ws=True, collector=collector).program(cases)
        full = [case for case in cases if case.m == 128]
        yield Multiply(kind, ws=True, in_tensor_memory=True).program(full)
        masked = [Product(a, b, d, m, n, 8, 4, shift=shift, mask=(starts, firsts, used, zeros))
                  for (m, n), starts, firsts, used, zeros, shift in masks]
        masked.append(Product(a, b, d, 64, 64, 1, 2, shift=8))
        yield Multiply(kind, ws=True, zeros=True).program(masked)
    yield Multiply("f16", ws=True).program([Product("f16", "f16", "f16", 32, 256, 1, 4)])
    yield Multiply("f16", ws=True, sparse=True).program(
        [Product("bf16", "bf16", "f32", 128, n, 8, 4, selector=i) for i, n in enumerate((64, 128))])

    # Block scaling. e3m2 meets small numbers only: the sums stay exact.
    pairs = (("e4m3", "e4m3", 32, 8), ("e5m2", "e2m1", 64, 1), ("e2m3", "e3m2", 40, 2),
             ("e3m2", "e5m2", 8, 4), ("e2m1", "e2m3", 96, 8))
    eight = [Product(a, b, "f32", 128, n, units, 8, id_a=i % 4, id_b=(i + 1) % 4, accumulates=i % 2 == 0)
             for i, (a, b, n, units) in enumerate(pairs)]
    twos = [Product("e2m1", "e2m1", "f32", 128, n, units, 8, id_a=a, id_b=b, negate_a=a > 0)
            for n, units, a, b in ((32, 8, 0, 0), (72, 1, 2, 0), (128, 4, 0, 2))]
    fours = [case.with_fields(id_a=0, id_b=0) for case in twos]
    ue4m3 = [case.with_fields(powers=False) for case in fours]
    for sparse in (False, True):
        forms = [("mxf8f6f4", 1, vector, eight) for vector in (".scale_vec::1X", ".block32", "")]
        forms += [("mxf4", 2, vector, twos) for vector in ("", ".scale_vec::2X", ".block32")]
        forms += [("mxf4nvf4", 2, ".scale_vec::2X", twos), ("mxf4nvf4", 2, ".block32", twos),
                  ("mxf4nvf4", 4, ".scale_vec::4X", ue4m3), ("mxf4nvf4", 4, ".block16", fours)]
        for kind, scales, vector, cases in forms:
            yield Multiply(kind, sparse=sparse, scales=scales, vector=vector).program(cases)
    yield Multiply("mxf8f6f4", scales=1, vector=".block32", in_tensor_memory=True).program(eight)
    yield Multiply("mxf4nvf4", scales=4, vector=".block16", in_tensor_memory=True).program(ue4m3)


def tensor_memory_instructions():
    yield from tensor_moves()
    yield from tensor_multiplications()


tensor_memory_instructions.prelude = TENSOR_PRELUDE


CLASSES = {
    "integers": integer_instructions,
    "bits": bit_instructions,
    "carries": carry_instructions,
    "comparisons": compare_instructions,
    "f32": lambda: real_instructions(F32),
    "f64": lambda: real_instructions(F64),
    "halves": half_instructions,
    "conversions": conversions,
    "approximations": approximations,
    "fp8": fp8_conversions,
    "packed": packed_instructions,
    "memory": memory_instructions,
    "atomics": atomic_instructions,
    "collectives": collective_instructions,
    "matrices": matrix_instructions,
    "copies": copy_instructions,
    "wgmma": wgmma_instructions,
    "tcgen05": tensor_memory_instructions,
}

HEAD = """// Generated by tests/emulator/ptx_conformance.py {name}
#include <cmath>
#include <cstdio>
#include <cstring>
using Word = unsigned long long;
template <class T> __host__ __device__ T as(Word word) {{ T value; memcpy(&value, &word, sizeof value); return value; }}
template <class T> __device__ Word bits(T value) {{ Word word = 0; memcpy(&word, &value, sizeof value); return word; }}
struct Row {{ Word operands[{operands}], expected; }};
alignas(32) __device__ Word scratch[{most}][4];  // a cell a row
template <class T, int n> __device__ Word mixed(const T (&all)[n]) {{
  Word sum = 0;
  for (int i = 0; i < n; ++i) sum += bits(all[i]) * (2 * i + 1);
  return sum;
}}
enum Compare {{ kBits, kF16, kBf16, kF16x2, kBf16x2, kF32, kF64, kRelative, kAbsolute }};

bool is_nan(Word word, int fraction, int width) {{
  const Word magnitude = word & ((Word(1) << (width - 1)) - 1), special = ((Word(1) << (width - 1 - fraction)) - 1) << fraction;
  return magnitude > special;
}}
bool agree(Word got, Word expected, Compare how, double error) {{
  if (got == expected) return true;
  switch (how) {{
    case kF16: return is_nan(got, 10, 16) && is_nan(expected, 10, 16);
    case kBf16: return is_nan(got, 7, 16) && is_nan(expected, 7, 16);
    case kF16x2: return agree(got & 0xffff, expected & 0xffff, kF16, 0) && agree(got >> 16, expected >> 16, kF16, 0);
    case kBf16x2: return agree(got & 0xffff, expected & 0xffff, kBf16, 0) && agree(got >> 16, expected >> 16, kBf16, 0);
    case kF32: return is_nan(got, 23, 32) && is_nan(expected, 23, 32);
    case kF64: return is_nan(got, 52, 64) && is_nan(expected, 52, 64);
    case kRelative: return std::fabs(double(as<float>(got)) - as<float>(expected)) <= error * std::fabs(as<float>(expected));
    case kAbsolute: return std::fabs(double(as<float>(got)) - as<float>(expected)) <= error;
    default: return false;
  }}
}}

int wrong = 0, checked = 0;
template <class Kernel>
void check(const char* name, Kernel kernel, const Row* rows, int count, Compare how, double error) {{
  Row* given;
  Word* got;
  cudaMallocManaged(&given, count * sizeof(Row));
  cudaMallocManaged(&got, count * sizeof(Word));
  memcpy(given, rows, count * sizeof(Row));
  kernel<<<(count + 127) / 128, 128>>>(given, got, count);
  if (cudaDeviceSynchronize() != cudaSuccess) {{ std::printf("%s: the kernel failed\\n", name); ++wrong; return; }}
  int bad = 0;
  for (int i = 0; i < count; ++i) {{
    ++checked;
    if (agree(got[i], rows[i].expected, how, error) || bad++ >= 3) continue;
    std::printf("%s(%llx, %llx, %llx, %llx) is %llx, not %llx\\n", name, rows[i].operands[0], rows[i].operands[1],
                rows[i].operands[2], rows[i].operands[3], got[i], rows[i].expected);
  }}
  wrong += bad;
  cudaFree(given);
  cudaFree(got);
}}
"""


def program(name):
    instructions = list(CLASSES[name]())
    width = max(4, *(len(row) for instruction in instructions for row, _ in instruction.rows))
    most = max(len(instruction.rows) for instruction in instructions)
    text, calls = [HEAD.format(name=name, operands=width, most=most)], []
    text[0] += getattr(CLASSES[name], "prelude", "")
    for i, instruction in enumerate(instructions):
        result, constraint = register_of(instruction.result)
        sources = [register_of(kind) for kind in instruction.operands]
        inputs = ", ".join(f'"{c}"(as<{t}>(r.operands[{k}]))' for k, (t, c) in enumerate(sources))
        operands = ", ".join(f"%{k + 1}" for k in range(len(sources)))
        operands += f", {instruction.immediate}" if hasattr(instruction, "immediate") else ""
        code = getattr(instruction, "text", f"{instruction.name} %0, {operands};")
        body = f'{result} d;\n  asm("{code}" : "={constraint}"(d) : {inputs});'
        if isinstance(instruction, Code):
            body = (f"alignas(32) __shared__ Word cells[128][4];\n  __shared__ Word bars[128];\n"
                    f"  const int lane = threadIdx.x & 31;\n  (void)lane;\n  Word d;\n  {instruction.code}")
        text.append(f"__global__ void k{i}(const Row* rows, Word* got, int n) {{\n"
                    f"  const int at = blockIdx.x * blockDim.x + threadIdx.x;\n  if (at >= n) return;\n"
                    f"  const Row r = rows[at];\n  {body}\n  got[at] = bits(d);\n}}")
        text.append(f"const Row rows{i}[] = {{")
        for row, expected in instruction.rows:
            words = ", ".join(f"{word:#x}" for word in row) or "0"
            text.append(f"    {{{{{words}}}, {expected:#x}}},")
        text.append("};")
        how = "kBits"
        if instruction.result in ("f16", "bf16", "f16x2", "bf16x2", "f32", "f64"):
            how = "k" + instruction.result.capitalize()
        error = 0.0
        if instruction.near:
            how, error = "k" + instruction.near[0].capitalize(), instruction.near[1]
        calls.append(f'  check("{instruction.name}", k{i}, rows{i}, sizeof rows{i} / sizeof *rows{i}, {how}, {error!r});')
    text.append("int main() {\n" + "\n".join(calls))
    text.append('  std::printf(wrong ? "FAIL: %d of %d values differ\\n" : "PASS: %2$d values\\n", wrong, checked);\n'
                "  return wrong != 0;\n}")
    return "\n".join(text)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("\n".join(CLASSES))
    else:
        print(program(sys.argv[1]))
