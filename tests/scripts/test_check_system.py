import ast
import sys
import types
import venv
from pathlib import Path

import pytest

from tests.modules import load_file

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "check_system.py"


@pytest.fixture
def headers(tmp_path):
    """A folder of headers."""
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "Python.h").touch()
    return folder


@pytest.fixture
def check_system(monkeypatch, headers):
    """The script on a system that lacks nothing."""
    module = load_file("scripts/check_system.py")
    sysconfig = types.SimpleNamespace(get_paths=lambda: {"include": str(headers)})
    monkeypatch.setattr(module, "is_supported", lambda version=None: True)
    monkeypatch.setattr(module, "find_spec", lambda name: name)
    monkeypatch.setattr(module, "sysconfig", sysconfig)
    monkeypatch.setattr(module.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(module.sys, "base_prefix", "/usr")
    monkeypatch.setenv("CC", "true")
    return module


def without(check_system, monkeypatch, *things):
    """Takes parts of the system away."""
    if "python" in things:
        monkeypatch.setattr(check_system, "is_supported", lambda version=None: False)
    if "venv" in things:
        monkeypatch.setattr(check_system, "find_spec", lambda name: None)
    if "headers" in things:
        Path(check_system.sysconfig.get_paths()["include"], "Python.h").unlink()
    if "compiler" in things:
        monkeypatch.setenv("CC", "no-such-compiler -O2")


def command(folder, name, text):
    """A program on a PATH of its own."""
    program = folder / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return program


def apt_line(text):
    """The packages that the report's last line installs."""
    before, _, packages = text.splitlines()[-1].partition("apt-get install -y ")
    assert before.strip().endswith("apt-get update && sudo")
    return packages.split()


def test_complete_system_is_silent(check_system, capsys):
    assert check_system.main([]) == 0
    assert capsys.readouterr() == ("", "")


def test_all_that_is_missing_is_named_at_once(check_system, monkeypatch, capsys):
    without(check_system, monkeypatch, "venv", "headers", "compiler")
    assert check_system.main([]) == 1
    text = capsys.readouterr().err
    for part in ("ensurepip", "Python.h", "a C compiler (`no-such-compiler -O2`"):
        assert part in text
    python = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    expected = {"gcc", "libc6-dev", f"{python}-venv", f"{python}-dev"}
    assert set(apt_line(text)) == expected


@pytest.mark.parametrize("thing", ["venv", "headers", "compiler"])
def test_one_thing_that_is_missing_is_named_alone(check_system, monkeypatch, thing):
    without(check_system, monkeypatch, thing)
    (missing,) = check_system.find_missing()
    word = {"venv": "ensurepip", "headers": "Python.h", "compiler": "compiler"}[thing]
    assert word in missing.what
    assert missing.packages


def test_root_needs_no_sudo(check_system, monkeypatch):
    without(check_system, monkeypatch, "compiler")
    monkeypatch.setattr(check_system.os, "geteuid", lambda: 0)
    text = check_system.report(check_system.find_missing())
    assert "sudo" not in text
    assert "apt-get install -y gcc libc6-dev" in text


def test_apt_cannot_mend_a_python_that_is_not_its_own(check_system, monkeypatch):
    without(check_system, monkeypatch, "venv", "headers")
    monkeypatch.setattr(check_system.sys, "base_prefix", "/home/someone/python")
    missing = check_system.find_missing()
    assert [item.packages for item in missing] == [[], []]
    assert "apt-get" not in check_system.report(missing)
    assert sys.executable in missing[0].what


def test_unsupported_python_names_the_newest_that_apt_offers(
    check_system, monkeypatch, tmp_path
):
    listing = "python3.11 - language\\npython3.13 - language\\npython3.12 - language"
    command(tmp_path, "apt-cache", f"printf '{listing}\\n'")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    without(check_system, monkeypatch, "python", "compiler", "headers")
    missing = check_system.find_missing()
    # Headers of a Python that will not be used are not asked for.
    assert [item.packages for item in missing] == [
        ["python3.13", "python3.13-venv", "python3.13-dev"],
        ["gcc", "libc6-dev"],
    ]
    assert sys.executable in missing[0].what
    assert "make ... PYTHON=" in missing[0].what


def test_unsupported_python_without_apt(check_system, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    without(check_system, monkeypatch, "python")
    missing = check_system.missing_python((3, 8))
    assert missing.packages == []
    assert "is 3.8" in missing.what
    assert "pyenv" in missing.what


def test_compiler_that_cannot_link_is_missing(check_system, monkeypatch):
    monkeypatch.setenv("CC", "false")
    assert check_system.missing_compiler().packages == ["gcc", "libc6-dev"]


def test_bounds_come_from_setup_cfg(check_system, tmp_path):
    setup_cfg = tmp_path / "setup.cfg"
    setup_cfg.write_text("[options]\npython_requires = >=3.9, <3.12\n")
    assert check_system.supported_versions(setup_cfg) == ((3, 9), (3, 12))
    setup_cfg.write_text("[options]\npython_requires = >=3.9\n")
    with pytest.raises(ValueError, match=r"python_requires .* Received: '>=3.9'"):
        check_system.supported_versions(setup_cfg)


def test_this_python_is_supported_and_python_2_is_not():
    module = load_file("scripts/check_system.py")
    first, end = module.supported_versions()
    assert module.is_supported()
    assert module.is_supported(first)
    assert not module.is_supported(end)
    assert not module.is_supported((2, 7))


@pytest.mark.parametrize(("thing", "status"), [("", 0), ("python", 1), ("venv", 0)])
def test_version_only_says_nothing(check_system, monkeypatch, capsys, thing, status):
    without(check_system, monkeypatch, thing)
    assert check_system.main(["--version-only"]) == status
    assert capsys.readouterr() == ("", "")


def test_environment_of_this_python_is_taken(check_system, tmp_path):
    folder = tmp_path / "venv"
    assert check_system.find_missing(folder) == []
    venv.create(folder, symlinks=True, with_pip=False)
    assert check_system.find_missing(folder) == []


@pytest.mark.parametrize(
    ("text", "found"), [("echo python3.6", "python3.6"), ("exit 1", "no Python")]
)
def test_environment_of_another_python_is_refused(check_system, tmp_path, text, found):
    command(tmp_path / "bin", "python", text)
    (missing,) = check_system.find_missing(tmp_path)
    assert f"{tmp_path}, which holds {found}" in missing.what
    assert missing.packages == []


def test_environment_whose_python_is_gone_is_refused(check_system, tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(tmp_path / "gone")
    (missing,) = check_system.find_missing(tmp_path)
    assert "no Python that runs" in missing.what


def test_python_38_can_read_the_script():
    tree = ast.parse(SCRIPT.read_text(encoding="utf-8"), feature_version=(3, 8))
    imported = {
        (getattr(node, "module", None) or node.names[0].name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert imported <= sys.stdlib_module_names
