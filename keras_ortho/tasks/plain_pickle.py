"""Pickles of plain values and byte arrays, read without unpickling.

Unpickling runs a program that the file holds. Here its instructions are read one by
one, and only those that build dictionaries, lists, tuples, numbers, texts and NumPy's
uint8 arrays are carried out; any other is an error. No name in a pickle is looked up,
and nothing in it is called.
"""

import math
import pickletools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

# A batch of CIFAR-10 has about 30 000 instructions; each may create an object.
MOST_OPCODES = 2**18

_BYTE_TYPES = ("u1", "|u1", "B", "uint8")
_ARRAY_MODULES = ("numpy.core.multiarray", "numpy._core.multiarray")


class _Name(NamedTuple):
    """A name in a module, never looked up."""

    module: str
    name: str


class _ByteType:
    """Placeholder for NumPy's dtype of uint8."""


class _Array:
    """Placeholder for an array until its contents are read."""

    def __init__(self) -> None:
        self.values: np.ndarray | None = None


_MARK = object()
_RECONSTRUCT = tuple(_Name(module, "_reconstruct") for module in _ARRAY_MODULES)
_NDARRAY = _Name("numpy", "ndarray")
_DTYPE = _Name("numpy", "dtype")


def read_plain_pickle(data: bytes) -> Any:
    """Reads a pickle of plain values and byte arrays.

    Args:
        data: A pickle of protocol 0 to 4, of Python 2 or 3.

    Returns:
        The value, made of dictionaries with text or bytes keys, lists, tuples,
        numbers, texts, bytes, `None` and uint8 arrays. Texts of Python 2 are decoded
        as Latin-1, which keeps their bytes.

    Raises:
        ValueError: If `data` is not a pickle, is damaged, or holds anything else.

    Example:
    >>> import pickle
    >>> read_plain_pickle(pickle.dumps({"labels": [3, 1]}, protocol=2))
    {'labels': [3, 1]}
    """
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count == MOST_OPCODES:
                raise ValueError(f"more than {MOST_OPCODES} instructions")
            machine.run(opcode.name, argument)
    except (IndexError, KeyError, OverflowError) as error:
        raise ValueError(f"damaged: {error!r}") from error
    return machine.result()


class _Machine:
    """The part of the pickle machine that builds plain values."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def result(self) -> Any:
        if len(self.stack) != 1:
            raise ValueError(f"damaged: {len(self.stack)} values at its end")
        value = _plain(self.stack[0])
        if value is _MARK or isinstance(value, _Name | _ByteType):
            raise ValueError("damaged: a name without a value")
        return value

    def run(self, name: str, argument: Any) -> None:
        if name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in _ACTIONS:
            _ACTIONS[name](self, argument)
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise ValueError(f"the instruction {name} is not allowed")

    def above_mark(self) -> list[Any]:
        for place in range(len(self.stack) - 1, -1, -1):
            if self.stack[place] is _MARK:
                items = self.stack[place + 1 :]
                del self.stack[place:]
                return items
        raise ValueError("damaged: no mark on the stack")

    def top(self, kind: type) -> Any:
        if not isinstance(self.stack[-1], kind):
            raise ValueError(f"damaged: no {kind.__name__} on the stack")
        return self.stack[-1]

    def mark(self, _: Any) -> None:
        self.stack.append(_MARK)

    def new(self, kind: Callable[[], Any]) -> None:
        self.stack.append(kind())

    def tuple_of(self, count: int) -> None:
        start = len(self.stack) - count
        if start < 0:
            raise ValueError("damaged: the stack is too short")
        items = tuple(self.stack[start:])
        del self.stack[start:]
        self.stack.append(items)

    def append(self, items: list[Any]) -> None:
        self.top(list).extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self.top(dict)
        if len(items) % 2:
            raise ValueError("damaged: a key without a value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | bytes):
                raise ValueError(f"a key is neither text nor bytes: {type(key)}")
            target[key] = value

    def dict_of(self, items: list[Any]) -> None:
        self.stack.append({})
        self.set_items(items)

    def take(self, count: int) -> list[Any]:
        self.tuple_of(count)
        return list(self.stack.pop())

    def put(self, place: int | None) -> None:
        self.memo[len(self.memo) if place is None else place] = self.stack[-1]

    def get(self, place: int) -> None:
        self.stack.append(self.memo[place])

    def pop(self, _: Any) -> None:
        self.stack.pop()

    def pop_mark(self, _: Any) -> None:
        self.above_mark()

    def name(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        self.push_name(module, name)

    def stack_name(self, _: Any) -> None:
        module, name = self.take(2)
        self.push_name(module, name)

    def push_name(self, module: Any, name: Any) -> None:
        if not isinstance(module, str) or not isinstance(name, str):
            raise ValueError("damaged: a name that is not a string")
        found = _Name(module, name)
        if found not in (*_RECONSTRUCT, _NDARRAY, _DTYPE):
            raise ValueError(f"{module[:80]}.{name[:80]} is not allowed")
        self.stack.append(found)

    def reduce(self, _: Any) -> None:
        function, arguments = self.take(2)
        if not isinstance(function, _Name) or not isinstance(arguments, tuple):
            raise ValueError("damaged: a call of something that is not a name")
        if function == _DTYPE:
            kind = arguments[0] if arguments else None
            if not isinstance(kind, str) or kind not in _BYTE_TYPES:
                # A value that is not text may be too long to print.
                found = f" {kind[:20]!r}" if isinstance(kind, str) else ""
                raise ValueError(f"an array must be uint8, not another type{found}")
            self.stack.append(_ByteType())
        elif function in _RECONSTRUCT and arguments[:1] == (_NDARRAY,):
            self.stack.append(_Array())
        else:
            raise ValueError(f"a call of {'.'.join(function)} is not allowed")

    def build(self, _: Any) -> None:
        state = self.stack.pop()
        target = self.stack[-1]
        # A byte has no byte order: the state of its dtype does not matter.
        if isinstance(target, _ByteType):
            return
        if not isinstance(target, _Array) or not isinstance(state, tuple):
            raise ValueError("damaged: contents of something that is not an array")
        target.values = _array(state)


def _array(state: tuple[Any, ...]) -> np.ndarray:
    """Makes the array of `(version, shape, dtype, is_fortran, contents)`."""
    if len(state) != 5:
        raise ValueError("damaged: an array without its contents")
    _, shape, dtype, is_fortran, contents = state
    if not isinstance(dtype, _ByteType) or is_fortran not in (False, 0):
        raise ValueError("an array must be uint8 in C order")
    if isinstance(contents, str):
        contents = contents.encode("latin-1")
    if not isinstance(contents, bytes) or not isinstance(shape, tuple):
        raise ValueError("damaged: an array without shape or contents")
    sizes_fit = all(type(size) is int and size >= 0 for size in shape)
    if not sizes_fit or math.prod(shape) != len(contents):
        raise ValueError(f"an array of {len(contents)} bytes has another shape")
    return np.frombuffer(contents, np.uint8).reshape(shape)


def _plain(value: Any) -> Any:
    """Replaces the placeholders of arrays in a value, up to one level down."""
    if isinstance(value, _Array):
        if value.values is None:
            raise ValueError("damaged: an array without its contents")
        return value.values
    if isinstance(value, dict):
        return {
            key: _plain(item) if isinstance(item, _Array) else item
            for key, item in value.items()
        }
    return value


_CONSTANTS: dict[str, Any] = {
    "NONE": None,
    "NEWTRUE": True,
    "NEWFALSE": False,
    "EMPTY_TUPLE": (),
}
# Instructions that push their own argument.
_LITERAL = re.compile(
    r"INT|LONG[14]?|BININT[12]?|(BIN)?FLOAT|(SHORT_)?BINSTRING|STRING|UNICODE"
    r"|(SHORT_)?BINUNICODE|BINUNICODE8|(SHORT_)?BINBYTES|BINBYTES8"
)
_LITERALS = frozenset(o.name for o in pickletools.opcodes if _LITERAL.fullmatch(o.name))
_ACTIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "MARK": _Machine.mark,
    "EMPTY_LIST": lambda machine, _: machine.new(list),
    "EMPTY_DICT": lambda machine, _: machine.new(dict),
    "LIST": lambda machine, _: machine.stack.append(machine.above_mark()),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.above_mark())),
    "DICT": lambda machine, _: machine.dict_of(machine.above_mark()),
    "TUPLE1": lambda machine, _: machine.tuple_of(1),
    "TUPLE2": lambda machine, _: machine.tuple_of(2),
    "TUPLE3": lambda machine, _: machine.tuple_of(3),
    "APPEND": lambda machine, _: machine.append(machine.take(1)),
    "APPENDS": lambda machine, _: machine.append(machine.above_mark()),
    "SETITEM": lambda machine, _: machine.set_items(machine.take(2)),
    "SETITEMS": lambda machine, _: machine.set_items(machine.above_mark()),
    "PUT": _Machine.put,
    "BINPUT": _Machine.put,
    "LONG_BINPUT": _Machine.put,
    "MEMOIZE": _Machine.put,
    "GET": _Machine.get,
    "BINGET": _Machine.get,
    "LONG_BINGET": _Machine.get,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_mark,
    "GLOBAL": _Machine.name,
    "STACK_GLOBAL": _Machine.stack_name,
    "REDUCE": _Machine.reduce,
    "BUILD": _Machine.build,
}
