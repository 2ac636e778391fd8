#!/usr/bin/env python3
"""Writes a CUDA program that checks one class of PTX instructions.

    tests/emulator/ptx_conformance.py CLASS > program.cu      # without CLASS: the classes, one a line

Classes follow the sections of the PTX ISA (9.0, 9.7). Every instruction of the class is made for each type,
rounding and modifier of its table, with operands at the limits and at random. The expected values are
computed here with whole numbers, fractions and decimals of 60 digits, never with this machine's floating
point. The program prints PASS, or each instruction that differs with its operands.
"""

import decimal
import fractions
import itertools
import math
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
}

HEAD = """// Generated by tests/emulator/ptx_conformance.py {name}
#include <cmath>
#include <cstdio>
#include <cstring>
using Word = unsigned long long;
template <class T> __host__ __device__ T as(Word word) {{ T value; memcpy(&value, &word, sizeof value); return value; }}
template <class T> __device__ Word bits(T value) {{ Word word = 0; memcpy(&word, &value, sizeof value); return word; }}
struct Row {{ Word operands[4], expected; }};
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
    text, calls = [HEAD.format(name=name)], []
    for i, instruction in enumerate(CLASSES[name]()):
        result, constraint = register_of(instruction.result)
        sources = [register_of(kind) for kind in instruction.operands]
        inputs = ", ".join(f'"{c}"(as<{t}>(r.operands[{k}]))' for k, (t, c) in enumerate(sources))
        operands = ", ".join(f"%{k + 1}" for k in range(len(sources)))
        operands += f", {instruction.immediate}" if hasattr(instruction, "immediate") else ""
        code = getattr(instruction, "text", f"{instruction.name} %0, {operands};")
        text.append(f"__global__ void k{i}(const Row* rows, Word* got, int n) {{\n"
                    f"  const int at = blockIdx.x * blockDim.x + threadIdx.x;\n  if (at >= n) return;\n"
                    f"  const Row r = rows[at];\n  {result} d;\n"
                    f'  asm("{code}" : "={constraint}"(d) : {inputs});\n  got[at] = bits(d);\n}}')
        text.append(f"const Row rows{i}[] = {{")
        for row, expected in instruction.rows:
            words = ", ".join(f"{word:#x}" for word in list(row) + [0] * (4 - len(row)))
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
