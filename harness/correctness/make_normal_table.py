#!/usr/bin/env python3
"""Writes normal_table.inc: cubic segments of the upper half of the inverse normal CDF (see random.h).

Segment s covers the tail numbers w in [2^e (1 + k/8), 2^e (1 + (k+1)/8)), e = s // 8 - 1, k = s % 8; the tail
probability is p = w / 2^32 and t runs from 0 to 1 across the segment. Each cubic interpolates -icdf(p) at the
four Chebyshev nodes. Run: python3 make_normal_table.py > normal_table.inc
"""
from math import cos, pi
from statistics import NormalDist

INVERSE = NormalDist().inv_cdf
NODES = [0.5 - 0.5 * cos((2 * i + 1) * pi / 8) for i in range(4)]


def interpolate(values):
    """Monomial coefficients, lowest power first, of the cubic through (NODES, values): Newton's form,
    expanded."""
    divided = list(values)
    for order in range(1, 4):
        for i in range(3, order - 1, -1):
            divided[i] = (divided[i] - divided[i - 1]) / (NODES[i] - NODES[i - order])
    coefficients = [divided[3], 0.0, 0.0, 0.0]
    for i in (2, 1, 0):
        shifted = [0.0] + coefficients[:3]
        coefficients = [s - NODES[i] * c for s, c in zip(shifted, coefficients)]
        coefficients[0] += divided[i]
    return coefficients


def segment(number):
    octave, eighth = divmod(number, 8)
    start = 2.0 ** (octave - 1) * (1 + eighth / 8)
    width = 2.0 ** (octave - 1) / 8
    return interpolate([-INVERSE((start + t * width) / 2.0 ** 32) for t in NODES])


print("// Written by make_normal_table.py; not to be edited.")
for number in range(256):
    print("{{" + ", ".join(f"{value:.9g}f" if "." in f"{value:.9g}" or "e" in f"{value:.9g}"
                           else f"{value:.9g}.0f"
                           for value in segment(number)) + "}},")
print("{{0.0f, 0.0f, 0.0f, 0.0f}},  // the median")
