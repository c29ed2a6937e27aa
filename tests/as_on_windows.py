"""Uses the package in the working folder as on Windows, as far as Linux can say.

`python -m tests.as_on_windows PART` runs a part of what users do. The standard library
and other packages ask Linux for Linux's modules, and Windows for Windows's: they are
imported before those of Linux are hidden. What they need later stays.
"""

import importlib
import multiprocessing
import os
import signal
import sys
import warnings
from pathlib import Path

import psutil

IMPORTED_BEFORE = (
    "concurrent.futures.process filelock h5py joblib keras multiprocessing.spawn numpy "
    "pesq pystoi soundfile subprocess tensorflow tqdm"
)
HIDDEN = "fcntl grp posix pty pwd resource spwd syslog termios tty"
NOT_ON_WINDOWS = {
    os: """
        O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_SYNC chown fchmod fdatasync fork getegid
        geteuid getgid getloadavg getpgid getpgrp getuid killpg lockf mkfifo nice
        pidfd_open pipe2 posix_fallocate posix_spawn pread pwrite register_at_fork
        sched_getaffinity sched_setaffinity setpgid setpriority setsid statvfs sync
        sysconf uname wait wait3 wait4
    """,
    signal: "SIGALRM SIGCHLD SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGUSR1 alarm",
}


def refuse(event, arguments):
    """Raises the errors that Windows has for files in use, and for some names."""
    if event == "open":
        path = os.path.abspath(str(arguments[0]))
        if path.startswith(os.getcwd()) and {*path} & {*'<>:"|?*'}:
            raise OSError(f"Windows has no such names: {path}")
    if event in {"os.rename", "os.remove"}:
        used = {file.path for file in psutil.Process().open_files()}
        if used & {os.path.realpath(path) for path in arguments[:2] if path != -1}:
            raise PermissionError(f"Windows keeps what is open: {arguments}")


def layers():
    import keras
    import numpy as np

    import keras_ortho
    from keras_ortho.tasks import adding
    from keras_ortho.training import train

    recurrent = keras_ortho.ScoRNN(6)
    model = keras.Sequential([keras.Input((10, 2)), recurrent, keras.layers.Dense(1)])
    model.compile("adam", "mse")
    x = np.random.default_rng(0).normal(size=(16, 10, 2))
    model.fit(x, x[:, 0, :1], verbose=0)
    model.save("model.keras")
    loaded = keras.saving.load_model("model.keras")
    outputs = (each.predict(x, verbose=0) for each in (model, loaded))
    np.testing.assert_array_equal(*outputs)
    task = adding.load(10, batch_size=8, train_size=40, test_size=16)
    first, second = (
        train(model, task.passes, "run", epochs=n, validation_data=task.test)
        for n in (1, 2)
    )
    assert second[:1] == first
    assert len(second) == 2


def speech():
    import numpy as np

    from keras_ortho.data_prep.pipeline import prepare
    from keras_ortho.metrics import score_speech
    from tests.data_prep.corpora import SENTENCES, noise, write_corpus

    write_corpus(Path("corpus"), sentences=SENTENCES[:2])
    shards = {"train": 2, "valid": 1, "test": 1}
    for written in (4, 0):
        outcome = prepare("corpus", "records", num_shards=shards, workers=2)
        assert outcome.written == written
    clean = [noise(seed, 8000) for seed in range(4)]
    noisy = [each + noise(9, 8000) // 8 for each in clean]
    alone, together = (score_speech(noisy, clean, processes=n) for n in (1, 2))
    for name, values in alone.items():
        assert np.isfinite(values).all()
        np.testing.assert_allclose(together[name], values, rtol=1e-13)


# The processes that the package starts load this module, too.
for name in IMPORTED_BEFORE.split():
    importlib.import_module(name)
sys.modules |= dict.fromkeys(HIDDEN.split())
for module, names in NOT_ON_WINDOWS.items():
    for name in names.split():
        delattr(module, name)
warnings.filterwarnings("error", category=EncodingWarning, module="keras_ortho")
sys.addaudithook(refuse)
if __name__ == "__main__":
    multiprocessing.set_start_method("spawn")
    {"layers": layers, "speech": speech}[sys.argv[1]]()
