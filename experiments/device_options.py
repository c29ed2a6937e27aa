"""Options and setup to train one network on several devices and hosts."""

import argparse
import atexit
import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

import keras

from keras_ortho.backend.processes import process_index

# The backend of each kind of distribution.
WAYS = {"none": "", "mirrored": "tensorflow", "data-parallel": "jax"}
AUTO = "auto"
PROCESS_ID = "KERAS_DISTRIBUTION_PROCESS_ID"
# Not recorded: `train` itself records the cases in which they affect the results.
OPTIONS = ("distribute", "hosts", "host_id", "cpu_devices")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options to train a network on several devices and hosts."""
    add = parser.add_argument
    add(
        "--distribute",
        choices=list(WAYS),
        default="none",
        help="on all devices: mirrored on TensorFlow, data-parallel on JAX (none)",
    )
    add(
        "--hosts",
        type=_read_hosts,
        metavar="HOST:PORT,HOST,...",
        help="with data-parallel: the hosts that train together, each by this command; "
        f"'{AUTO}' asks SLURM, or reads KERAS_DISTRIBUTION_JOB_ADDRESSES",
    )
    add(
        "--host-id",
        type=int,
        metavar="K",
        help=f"index of this host in --hosts, from 0 ({PROCESS_ID}, or by its name)",
    )
    add(
        "--cpu-devices",
        type=int,
        metavar="N",
        help="treat the processor as N devices, to try --distribute",
    )


def _read_hosts(text: str) -> list[str]:
    hosts = text.split(",")
    if hosts == [AUTO]:
        return hosts
    _, colon, port = hosts[0].rpartition(":")
    has_port = colon and port.isdecimal() and 0 < int(port) < 2**16
    if len(hosts) < 2 or not all(hosts) or not has_port:
        raise argparse.ArgumentTypeError(
            f"must be '{AUTO}', or several hosts, the first with a port, as "
            f"host0:1234,host1. Received: {text}"
        )
    return hosts


def check(given: argparse.Namespace) -> None:
    """Checks the options."""
    way, backend = given.distribute, keras.backend.backend()
    if way != "none" and WAYS[way] != backend:
        raise ValueError(
            f"--distribute {way} needs KERAS_BACKEND={WAYS[way]}. "
            f"Received: KERAS_BACKEND={backend}"
        )
    if given.hosts and way != "data-parallel":
        raise ValueError(
            f"--hosts needs --distribute data-parallel. Received: --distribute {way}"
        )
    if given.cpu_devices and way == "none":
        raise ValueError(
            "--cpu-devices is for --distribute. "
            f"Received: --cpu-devices {given.cpu_devices}"
        )
    if given.host_id is None:
        return
    if not given.hosts or given.hosts == [AUTO]:
        raise ValueError(
            "--host-id needs --hosts that names them. "
            f"Received: --host-id {given.host_id}"
        )
    if not 0 <= given.host_id < len(given.hosts):
        raise ValueError(
            f"--host-id must be from 0 to {len(given.hosts) - 1}. "
            f"Received: {given.host_id}"
        )


def _initialize_from_environment() -> None:
    try:
        keras.distribution.initialize()
    except (ValueError, RuntimeError) as error:
        raise ValueError(
            f"--hosts {AUTO} needs a job of SLURM, or KERAS_DISTRIBUTION_JOB_ADDRESSES,"
            f" KERAS_DISTRIBUTION_NUM_PROCESSES and {PROCESS_ID}. Received: {error}"
        ) from error


def set_up(given: argparse.Namespace) -> None:
    """Sets up the devices and connects to the other hosts, before any computation.

    Only the first process prints, and writes to `--out`. The others write to temporary
    folders that are removed when they end.
    """
    check(given)
    if given.cpu_devices:
        _divide_processor(given.cpu_devices)
    if not given.hosts:
        return
    if given.hosts == [AUTO]:
        _initialize_from_environment()
    else:
        keras.distribution.initialize(
            given.hosts[0], len(given.hosts), _host_id(given.hosts, given.host_id)
        )
    if process_index() > 0:
        given.out = Path(tempfile.mkdtemp(prefix="keras-ortho-"))
        atexit.register(shutil.rmtree, given.out, ignore_errors=True)
        with open(os.devnull, "w", encoding="utf-8") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())


def _divide_processor(devices: int) -> None:
    if keras.backend.backend() == "jax":
        import jax

        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_num_cpu_devices", devices)
        return
    import tensorflow as tf

    tf.config.set_visible_devices([], "GPU")
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * devices,
    )


def _host_id(hosts: list[str], given: int | None) -> int:
    if given is not None:
        return given
    if PROCESS_ID in os.environ:
        number = os.environ[PROCESS_ID]
        if not number.isdecimal() or int(number) >= len(hosts):
            raise ValueError(
                f"{PROCESS_ID} must be from 0 to {len(hosts) - 1}. Received: {number}"
            )
        return int(number)
    own = platform.node()
    places = [
        place
        for place, host in enumerate(hosts)
        if host.partition(":")[0] in (own, own.partition(".")[0])
    ]
    if len(places) != 1:
        raise ValueError(
            f"--hosts must name this host, {own}, once, unless --host-id is given. "
            f"Received: {','.join(hosts)}"
        )
    return places[0]
