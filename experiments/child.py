"""Runs Python in a process that ends when its standard input, a pipe, closes."""

import os
import runpy
import sys
import threading


def _end_with_parent(pipe: int) -> None:
    os.read(pipe, 1)
    os._exit(1)


if __name__ == "__main__":
    pipe = os.dup(0)
    # On Windows, programs that this one starts would wait for the pipe to be read.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        # In the root of a checkout, its package would hide the installed one.
        del sys.argv[0], sys.path[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        # As Python itself would set it: this folder is not one to import from.
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
