"""Reports everything this system lacks for the package to be installed.

`make` runs it with the Python to install into. It needs only the standard library, and
also runs on versions of Python that are too old, so that it can refuse them.
"""

from __future__ import annotations

import argparse
import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

SETUP_CFG = Path(__file__).resolve().parent.parent / "setup.cfg"
PYTHON = f"python{sys.version_info[0]}.{sys.version_info[1]}"


class Missing(NamedTuple):
    """Something that the installation needs, and the apt packages that provide it."""

    what: str
    packages: list[str]


def supported_versions(setup_cfg: Path = SETUP_CFG) -> tuple[tuple, tuple]:
    """Returns the first supported version of Python, and the first unsupported one."""
    config = configparser.ConfigParser()
    config.read_string(setup_cfg.read_text(encoding="utf-8"))
    bounds = config["options"]["python_requires"]
    match = re.fullmatch(r">=(\d+)\.(\d+),<(\d+)\.(\d+)", bounds.replace(" ", ""))
    if match is None:
        raise ValueError(
            f"python_requires in setup.cfg must read `>=3.a,<3.b`. Received: {bounds!r}"
        )
    numbers = tuple(int(number) for number in match.groups())
    return numbers[:2], numbers[2:]


def is_supported(version: tuple = sys.version_info[:2]) -> bool:
    """Whether the package supports this version of Python."""
    first, end = supported_versions()
    return first <= version < end


def apt_pythons() -> list[str]:
    """Returns the supported Pythons that apt offers, newest first."""
    if shutil.which("apt-cache") is None:
        return []
    first, end = supported_versions()
    minors = "|".join(str(minor) for minor in range(first[1], end[1]))
    listing = subprocess.run(
        ["apt-cache", "search", "--names-only", f"^python3[.]({minors})$"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    names = [line.split()[0] for line in listing.splitlines()]
    return sorted(names, key=lambda name: int(name.split(".")[1]), reverse=True)


def missing_python(version: tuple = sys.version_info[:2]) -> Missing | None:
    """Checks for a version of Python that the package supports."""
    if is_supported(version):
        return None
    first, end = (".".join(map(str, bound)) for bound in supported_versions())
    what = (
        f"Python {first} or later, before {end}: {sys.executable} is "
        f"{version[0]}.{version[1]}. Another one is chosen by "
        "`make ... PYTHON=/path/to/python`"
    )
    offered = apt_pythons()
    if offered:
        return Missing(what, [f"{offered[0]}{part}" for part in ("", "-venv", "-dev")])
    return Missing(f"{what}; where apt has none, uv, pyenv or conda install one", [])


def part_of_python(what: str, package: str) -> Missing:
    """Describes a missing part of Python. Apt has packages only for its own Pythons."""
    if sys.base_prefix == "/usr":
        return Missing(what, [package])
    return Missing(
        f"{what}: {sys.executable}, which apt did not install, lacks it. Install that "
        "Python anew, or choose apt's by `make ... PYTHON=/usr/bin/python3`",
        [],
    )


def missing_venv() -> Missing | None:
    """Checks for the modules that create a virtual environment with pip."""
    if find_spec("venv") and find_spec("ensurepip"):
        return None
    return part_of_python(
        "venv and ensurepip of the standard library", f"{PYTHON}-venv"
    )


def missing_headers() -> Missing | None:
    """Checks for the headers needed to compile C extensions for this Python."""
    if Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        return None
    return part_of_python("Python.h, to compile the package pesq", f"{PYTHON}-dev")


def missing_compiler() -> Missing | None:
    """Checks for a C compiler that finds its linker and the C library."""
    compiler = os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <stdlib.h>\nvoid *probe(void) {return malloc(1);}")
        options = ["-shared", "-fPIC", str(source), "-o", str(Path(folder, "probe.so"))]
        try:
            subprocess.run(
                [*shlex.split(compiler), *options], capture_output=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):
            return Missing(
                f"a C compiler (`{compiler}`, or another named by the variable CC), "
                "to compile the package pesq",
                ["gcc", "libc6-dev"],
            )
    return None


def mismatched_venv(folder: Path) -> Missing | None:
    """Checks that an existing virtual environment has this version of Python."""
    if not folder.exists():
        return None
    probe = "import sys; print('python%d.%d' % sys.version_info[:2])"
    try:
        found = subprocess.run(
            [str(folder / "bin" / "python"), "-c", probe],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        found = "no Python that runs"
    if found == PYTHON:
        return None
    return Missing(
        f"{PYTHON} in {folder}, which holds {found}: remove that folder, or give "
        "another one by `make ... VENV=folder`",
        [],
    )


def find_missing(venv: Path | None = None) -> list[Missing]:
    """Returns everything that is missing, not only the first item."""
    checks = [missing_python(), missing_compiler()]
    if checks[0] is None:
        checks += [missing_venv(), missing_headers()]
        checks += [mismatched_venv(venv)] if venv is not None else []
    return [missing for missing in checks if missing is not None]


def report(missing: list[Missing]) -> str:
    """Formats the report, with one command that installs all that apt provides."""
    lines = ["keras-ortho cannot be installed yet. It needs"]
    lines += [f"  - {item.what}." for item in missing]
    packages = " ".join(name for item in missing for name in item.packages)
    if packages:
        sudo = "" if os.geteuid() == 0 else "sudo "
        lines.append("On Debian and Ubuntu:")
        lines.append(f"  {sudo}apt-get update && {sudo}apt-get install -y {packages}")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit status: 0 if nothing is missing, otherwise 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--venv", type=Path, help="the virtual environment, made or still to be made"
    )
    parser.add_argument(
        "--version-only",
        action="store_true",
        help="say nothing, and exit with 1 if this version of Python is not supported",
    )
    options = parser.parse_args(arguments)
    if options.version_only:
        return 0 if is_supported() else 1
    missing = find_missing(options.venv)
    if missing:
        print(report(missing), file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    raise SystemExit(main())
