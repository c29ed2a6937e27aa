import functools
import os
from concurrent.futures import BrokenExecutor

import pytest

from keras_ortho.executors import check_shared, in_parallel
from tests.executors.clusters import cluster


@pytest.mark.slow
def test_work_on_the_workers(tmp_path):
    """Which are started again, and may be lost twice by a call."""
    setting = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1"}
    with cluster(tmp_path / "dask", nanny=True, **setting) as (address, _):
        work = functools.partial(in_parallel, workers=1, scheduler=address)
        assert list(work(len, ["a", "bc", ""])) == [1, 2, 0]
        with pytest.raises(BrokenExecutor, match="all those workers died"):
            list(work(os._exit, [1]))
        with pytest.raises(FileNotFoundError, match="a file system that all share"):
            list(work(check_shared, [tmp_path / "elsewhere"]))


@pytest.mark.parametrize("bad", ["nowhere", "ftp://here:1", "tls://here:1"])
def test_the_address_must_be_that_of_a_scheduler(bad):
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=f"`scheduler` must be .*Received: {bad}"):
        list(in_parallel(len, ["a"], 1, bad))
