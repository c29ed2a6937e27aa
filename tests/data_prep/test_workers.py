import os
import signal

from data_prep.workers import worker_pool


def test_an_interrupt_is_left_to_the_parent():
    with worker_pool(1) as pool:
        worker = pool.submit(os.getpid).result()
        os.kill(worker, signal.SIGINT)
        assert pool.submit(os.getpid).result() == worker != os.getpid()
