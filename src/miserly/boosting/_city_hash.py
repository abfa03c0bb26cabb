"""The hash by which CatBoost knows the words of a category: CityHash64, version 1.0, of which it keeps 32 bits."""

from __future__ import annotations

WORD = (1 << 64) - 1
K0, K1, K2, K3 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F, 0xC949D7C7509E6557
K_MUL = 0x9DDFEA08EB382D69


def category_hash(word: str) -> int:
    """What CatBoost's files hold for a category, as a signed number of 32 bits."""
    bits = city_hash(word.encode()) & 0xFFFFFFFF
    return bits - (1 << 32) if bits >> 31 else bits


def city_hash(data: bytes) -> int:
    """The hash of some bytes, 64 bits."""
    n = len(data)
    if n <= 16:
        return _up_to_16(data, n)
    if n <= 32:
        a, b = _eight(data, 0) * K1, _eight(data, 8)
        c, d = _eight(data, n - 8) * K2, _eight(data, n - 16) * K0
        return _mix(_turn(a - b, 43) + _turn(c, 30) + d, a + _turn(b ^ K3, 20) - c + n)
    return _up_to_64(data, n) if n <= 64 else _longer(data, n)


def _eight(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _turn(value: int, by: int) -> int:
    value &= WORD
    return (value >> by | value << 64 - by) & WORD if by else value


def _fold(value: int) -> int:
    value &= WORD
    return value ^ value >> 47


def _mix(u: int, v: int) -> int:
    a = _fold(((u ^ v) & WORD) * K_MUL)
    return _fold(((v ^ a) & WORD) * K_MUL) * K_MUL & WORD


def _up_to_16(data: bytes, n: int) -> int:
    if n > 8:
        a, b = _eight(data, 0), _eight(data, n - 8)
        return _mix(a, _turn(b + n, n)) ^ b
    if n >= 4:
        first, last = (int.from_bytes(part, "little") for part in (data[:4], data[n - 4 :]))
        return _mix(n + (first << 3), last)
    if not n:
        return K2
    y, z = data[0] + (data[n >> 1] << 8), n + (data[n - 1] << 2)
    return _fold(y * K2 ^ z * K3) * K2 & WORD


def _half(a: int, z: int, parts: tuple[int, int, int]) -> tuple[int, int]:
    a += parts[0]
    b, c = _turn(a + z, 52), _turn(a, 37)
    a += parts[1]
    c += _turn(a, 7)
    a += parts[2]
    return a + z, b + _turn(a, 31) + c


def _up_to_64(data: bytes, n: int) -> int:
    first = (_eight(data, 0), _eight(data, 8), _eight(data, 16))
    v0, v1 = _half((n + _eight(data, n - 16)) * K0, _eight(data, 24), first)
    last = (_eight(data, n - 32), _eight(data, n - 24), _eight(data, n - 16))
    w0, w1 = _half(_eight(data, 16), _eight(data, n - 8), last)
    r = _fold((v0 + w1) * K2 + (w0 + v1) * K0)
    return _fold(r * K0 + v1) * K2 & WORD


def _weak(data: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    w, x, y, z = (_eight(data, at + 8 * i) for i in range(4))
    a += w
    b = _turn(b + a + z, 21)
    c = a
    a += x + y
    return (a + z) & WORD, (b + _turn(a, 44) + c) & WORD


def _longer(data: bytes, n: int) -> int:
    x, y, z = _eight(data, 0), _eight(data, n - 16) ^ K1, _eight(data, n - 56) ^ K0
    v, w = _weak(data, n - 64, n, y), _weak(data, n - 32, n * K1, K0)
    z += _fold(v[1]) * K1
    x, y = _turn(z + x, 39) * K1, _turn(y, 33) * K1
    for at in range(0, (n - 1) & ~63, 64):
        x = _turn(x + y + v[0] + _eight(data, at + 16), 37) * K1 & WORD
        y = _turn(y + v[1] + _eight(data, at + 48), 42) * K1 & WORD
        x, y = x ^ w[1], y ^ v[0]
        z = _turn((z ^ w[0]) & WORD, 33)
        v = _weak(data, at, v[1] * K1, x + w[0])
        w = _weak(data, at + 32, z + w[1], y)
        z, x = x, z
    return _mix(_mix(v[0], w[0]) + _fold(y) * K1 + z, _mix(v[1], w[1]) + x)
