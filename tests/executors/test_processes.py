import multiprocessing
import os
import signal
import time
from concurrent.futures.process import BrokenProcessPool

import pytest

from keras_ortho.executors.processes import worker_pool


def test_an_interrupt_is_left_to_the_parent():
    with worker_pool(1) as pool:
        worker = pool.submit(os.getpid).result()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker != os.getpid()


def test_a_broken_pool_is_said_to_be_broken_and_is_left():
    """Also where the death of a worker first shows as some other error."""

    def fail():
        with worker_pool(1) as pool:
            os.kill(pool.submit(os.getpid).result(), signal.SIGKILL)
            with pytest.raises(BrokenProcessPool):
                pool.submit(os.getpid).result(timeout=60)
            raise OSError("handle is closed")

    before = set(multiprocessing.active_children())  # of other tests
    with pytest.raises(BrokenProcessPool) as caught:
        fail()
    assert isinstance(caught.value.__cause__, OSError)
    assert set(multiprocessing.active_children()) <= before


def test_a_broken_pool_leaves_other_processes():
    with worker_pool(1) as outer:
        worker = outer.submit(os.getpid).result()
        with pytest.raises(BrokenProcessPool), worker_pool(1) as inner:
            inner.submit(os._exit, 3).result(timeout=60)
        assert outer.submit(os.getpid).result(timeout=60) == worker


def test_what_is_left_is_given_up(tmp_path):
    """After an error, or an interrupt; not where the work is merely waited for."""

    def work(count, error=None):
        with worker_pool(1) as pool:
            pool.submit(time.sleep, 0).result()
            futures.extend(pool.submit(time.sleep, 0.1) for _ in range(count))
            if error:
                raise error

    for error in (ValueError, KeyboardInterrupt):
        futures = []
        with pytest.raises(error):
            work(60, error)
        # One runs, and the executor has taken two more; others, if this process waits.
        assert sum(future.cancelled() for future in futures) >= 6
    futures = []
    work(3)
    assert not any(future.cancelled() for future in futures)


def test_another_error_stays_what_it_is():
    def fail():
        with worker_pool(1) as pool:
            pool.submit(os.getpid).result()
            raise ValueError("of the caller's")

    with pytest.raises(ValueError, match="of the caller's"):
        fail()
