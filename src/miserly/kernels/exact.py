"""Sums that lose nothing: the mantissas of numbers, added as integers by exponent."""

import numpy as np

from miserly.kernels.compiling import compiled

N_EXPONENTS = 2048  # of a float64
LOW_BITS = 26  # half of a mantissa of 53: sums of 2²⁴ halves fit a float's mantissa
_MANTISSA = np.int64((1 << 52) - 1)
_LEADING = np.int64(1 << 52)
_LOW = np.int64((1 << LOW_BITS) - 1)


@compiled
def add_by_exponent(bits, high, low):
    """Add float64 numbers, given as the int64 of their bits, to the sums of the upper and lower halves of mantissas.

    Returns the lowest and the highest exponent.
    """
    first, last = N_EXPONENTS - 1, 0
    for i in range(bits.size):
        exponent = (bits[i] >> 52) & 2047
        mantissa = bits[i] & _MANTISSA
        if exponent > 0:
            mantissa |= _LEADING
        else:
            exponent = 1
        if bits[i] < 0:
            mantissa = -mantissa
        high[exponent] += mantissa >> LOW_BITS
        low[exponent] += mantissa & _LOW
        first, last = min(first, exponent), max(last, exponent)
    return first, last
