"""Changes to the bytes of a file, as by damage or malice."""

import random
import re
import struct
from collections.abc import Sequence

LARGEST = 2**21  # bytes, of a file that is made to grow

_NUMBERS = re.compile(rb"\d+")
_TEXTS = (
    *(b"0", b"-1", b"1", b"255", b"65536", b"4294967295", b"9223372036854775808"),
    *(
        b"9" * 30,
        b"9" * 5000,
        b"1e308",
        b"1e9999",
        b"nan",
        b"inf",
        b"abc",
        b"",
        b"0x10",
    ),
)
_FORMATS = ("B", "<H", ">H", "<I", ">I", "<Q", ">Q")


def mutate(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Changes bytes in one to four ways.

    Args:
        generator: Random generator that chooses the changes.
        data: The bytes.
        others: The bytes of files to splice with.

    Returns:
        The changed bytes.
    """
    count = generator.choice((1, 1, 1, 2, 2, 3, 4))
    for change in generator.choices(_CHANGES, k=count):
        data = change(generator, data, others)
    # Rarely, because reading such a file takes a second.
    return _bloat(generator, data) if generator.random() < 0.001 else data


def _flip(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    for _bit in range(generator.randint(1, 8)):
        changed[_place(generator, changed)] ^= 1 << generator.randrange(8)
    return bytes(changed)


def _overwrite(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    changed = bytearray(data or b"\0")
    changed[_place(generator, changed)] = generator.randrange(256)
    return bytes(changed)


def _cut(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    return data[: generator.randint(0, len(data))]


def _remove(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start = generator.randint(0, len(data))
    return data[:start] + data[start + generator.randint(1, 64) :]


def _insert(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start = generator.randint(0, len(data))
    size = generator.choice((1, 1, 4, 64, 4096))
    new = generator.randbytes(1) * size if size > 64 else generator.randbytes(size)
    return data[:start] + new + data[start:]


def _repeat(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    start = generator.randint(0, len(data))
    part = data[start : start + generator.randint(1, 64)]
    return data[:start] + part * generator.choice((1, 2, 50)) + data[start:]


def _bloat(generator: random.Random, data: bytes) -> bytes:
    """Repeats a part so often that what a reader keeps of each shows in its memory."""
    start = generator.randint(0, len(data))
    part = data[start : start + generator.choice((1, 2, 3, 4, 64, 1024))] or b"\0"
    times = max(0, generator.randint(LARGEST // 4, LARGEST) - len(data)) // len(part)
    return data[:start] + part * times + data[start:]


def _field(generator: random.Random, data: bytes, _: Sequence[bytes]) -> bytes:
    """Replaces a binary integer, often one near the start of the file."""
    form = generator.choice(_FORMATS)
    size = struct.calcsize(form)
    if len(data) < size:
        return data
    bits = 8 * size
    value = generator.choice(
        (
            *(0, 1, 2**bits - 1, 2 ** (bits - 1), 2 ** (bits - 1) - 1),
            *(2 ** generator.randrange(bits), len(data) + generator.randint(-4, 4)),
        )
    )
    start = min(_place(generator, data), len(data) - size)
    new = struct.pack(form, value % 2**bits)
    return data[:start] + new + data[start + size :]


def _number(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Replaces a number in decimal digits."""
    start = generator.randint(0, max(0, len(data) - 4096))
    found = list(_NUMBERS.finditer(data[:1024] if start < 1024 else data, start % 1024))
    if not found:
        return _field(generator, data, others)
    match = generator.choice(found[:200])
    return data[: match.start()] + generator.choice(_TEXTS) + data[match.end() :]


def _splice(generator: random.Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = generator.choice(others)
    start, end = generator.randint(0, len(data)), generator.randint(0, len(other))
    if generator.random() < 0.5:  # A part of the other file, in the middle.
        part = other[end : end + generator.randint(1, 256)]
        return data[:start] + part + data[start + len(part) :]
    return data[:start] + other[end:]


def _place(generator: random.Random, data: bytes | bytearray) -> int:
    size = len(data)
    return generator.randrange(min(size, 64) if generator.random() < 0.4 else size)


_CHANGES = (
    *(_flip, _overwrite, _cut, _remove, _insert, _repeat),
    *(_field, _field, _number, _number, _splice),
)
