import argparse

import keras
import pytest

from experiments import device_options
from experiments.distributed import distributed
from experiments.options import read_task
from experiments.settings import Settings

BACKEND = keras.backend.backend()


def parse(*options):
    parser = argparse.ArgumentParser()
    device_options.add_options(parser)
    return parser.parse_args(options)


def test_one_device_is_usual(tmp_path):
    settings = read_task("adding", "", ["--out", str(tmp_path)])
    assert settings.distribute == "none"
    with distributed(settings):
        assert keras.distribution.distribution() is None


@pytest.mark.parametrize(
    "text", ["host0", "host0:1234", "host0,host1", "a:1,", "a:b,c", "a:99999,b"]
)
def test_hosts_must_be_several_and_the_first_with_a_port(text, capsys):
    with pytest.raises(SystemExit):
        parse("--hosts", text)
    assert f"Received: {text}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--hosts", "a:1,b"], "--hosts needs --distribute data-parallel"),
        (["--cpu-devices", "2"], "--cpu-devices is for --distribute. Received"),
        (["--host-id", "1"], "--host-id needs --hosts"),
    ],
)
def test_options_that_contradict_each_other(options, match):
    with pytest.raises(ValueError, match=match):
        device_options.check(parse(*options))


def test_each_way_has_its_backend():
    way = "data-parallel" if BACKEND == "tensorflow" else "mirrored"
    with pytest.raises(ValueError, match=f"--distribute {way} needs KERAS_BACKEND="):
        device_options.check(parse("--distribute", way))


def test_a_host_that_there_is_not(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    options = ["--distribute", "data-parallel", "--hosts", "a:1,b", "--host-id"]
    device_options.check(parse(*options, "1"))
    with pytest.raises(ValueError, match="from 0 to 1. Received: 2"):
        device_options.check(parse(*options, "2"))


def test_seeds_are_for_one_host(monkeypatch, tmp_path):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    options = ["--distribute", "data-parallel", "--hosts", "a:1,b", "--seeds", "2"]
    with pytest.raises(ValueError, match="--hosts execute one run at a time"):
        read_task("adding", "", ["--out", str(tmp_path), *options])


@pytest.mark.parametrize(
    ("given", "variable", "name", "expected"),
    [
        (1, "0", "a", 1),
        (None, "1", "a", 1),
        (None, None, "b.cluster", 1),
        (None, None, "a", 0),
    ],
)
def test_who_a_host_is(given, variable, name, expected, monkeypatch):
    monkeypatch.delenv(device_options.PROCESS_ID, raising=False)
    if variable:
        monkeypatch.setenv(device_options.PROCESS_ID, variable)
    monkeypatch.setattr("platform.node", lambda: name)
    assert device_options._host_id(["a:1", "b"], given) == expected


def test_a_host_that_is_not_named(monkeypatch):
    monkeypatch.delenv(device_options.PROCESS_ID, raising=False)
    monkeypatch.setattr("platform.node", lambda: "c")
    with pytest.raises(ValueError, match="must name this host, c, once"):
        device_options._host_id(["a:1", "b"], None)


def test_no_job_to_ask(monkeypatch, tmp_path):
    def initialize():
        raise ValueError("no addresses")

    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    monkeypatch.setattr(keras.distribution, "initialize", initialize)
    given = parse("--distribute", "data-parallel", "--hosts", "auto")
    with pytest.raises(ValueError, match="--hosts auto needs.*Received: no addresses"):
        device_options.set_up(given)


@pytest.mark.parametrize("number", ["abc", "2", "-1"])
def test_a_number_of_no_host(number, monkeypatch):
    monkeypatch.setenv(device_options.PROCESS_ID, number)
    with pytest.raises(ValueError, match=f"must be from 0 to 1. Received: {number}$"):
        device_options._host_id(["a:1", "b"], None)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a strategy of TensorFlow")
@pytest.mark.parametrize("sizes", [{"batch_size": 7}, {"batch_sizes": [6, 7]}])
def test_devices_must_divide_the_batches(sizes, monkeypatch):
    monkeypatch.setattr(
        "experiments.distributed.own_share", lambda: argparse.Namespace(replicas=2)
    )
    settings = Settings(distribute="mirrored", **sizes)
    with (
        pytest.raises(ValueError, match="must divide the batch size. Received: 7"),
        distributed(settings),
    ):
        pass
