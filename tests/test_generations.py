import shutil

import pytest

from keras_ortho.generations import CHECKSUMS, Generations, UnreadableError, reading

FILES = {"weights": b"w" * 1_000, "figures": b"1,2\n"}


def add(folder, *epochs):
    generations = Generations(folder, "figures")
    generations.read(lambda state: None)
    for epoch in epochs:
        with generations.add(epoch) as aside:
            for name, content in FILES.items():
                (aside / name).write_bytes(content + str(epoch).encode())
    return generations


def read(folder):
    """The epoch that is read, and whether anything is."""
    found = []

    def each(state):
        for name, content in FILES.items():
            with reading(state / name):
                text = (state / name).read_bytes().removeprefix(content)
                found.append(int(text))  # Not of an empty one.

    generations = Generations(folder, "figures")
    generations.read(each)
    return generations, found[-1] if found else None


def states(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_newest_of_two(tmp_path):
    assert read(tmp_path)[1] is None
    assert add(tmp_path).newest is None
    add(tmp_path, 1)
    assert read(tmp_path)[1] == 1
    generations = add(tmp_path, 2, 5)
    assert generations.newest == tmp_path / "epoch-000005" == generations.path(5)
    assert states(tmp_path) == ["epoch-000002", "epoch-000005"]
    assert read(tmp_path)[1] == 5


@pytest.mark.parametrize("name", [*FILES, CHECKSUMS])
@pytest.mark.parametrize("how", ["flipped", "cut", "emptied", "removed"])
def test_falls_back_from_a_damaged_file(name, how, tmp_path):
    add(tmp_path, 1, 2)
    damaged = tmp_path / "epoch-000002" / name
    content = bytearray(damaged.read_bytes())
    if how == "flipped":
        content[len(content) // 2] ^= 1
    damaged.write_bytes(content[: {"cut": 3, "emptied": 0}.get(how)])
    if how == "removed":
        damaged.unlink()
        if name == CHECKSUMS:  # Then it is as one that never had any.
            assert read(tmp_path)[1] == 2
            return
    with pytest.warns(UserWarning, match=f"{name} .*resumes from .*epoch-000001"):
        generations, epoch = read(tmp_path)
    assert epoch == 1
    # The one that was read is kept beside the next, which may be called as the other.
    with generations.add(2) as aside:
        (aside / "weights").write_bytes(b"new")
    assert states(tmp_path) == ["epoch-000001", "epoch-000002"]
    assert (tmp_path / "epoch-000002" / "weights").read_bytes() == b"new"


def test_the_damaged_one_goes_first(tmp_path):
    add(tmp_path, 1, 2)
    (tmp_path / "epoch-000002" / "weights").write_bytes(b"")
    with pytest.warns(UserWarning, match="epoch-000002/weights is damaged"):
        generations, _ = read(tmp_path)
    with generations.add(4):
        pass
    assert states(tmp_path) == ["epoch-000001", "epoch-000004"]


def test_an_error_names_all_that_is_damaged(tmp_path):
    add(tmp_path, 1, 2)
    (tmp_path / "epoch-000001" / "figures").unlink()
    (tmp_path / "epoch-000002" / "weights").write_bytes(b"")
    (tmp_path / "epoch-000002" / "figures").write_bytes(b"")
    with pytest.raises(UnreadableError) as error:
        read(tmp_path)
    for text in (
        "epoch-000001/figures is missing",
        "epoch-000002/weights is damaged",
        "epoch-000002/figures is damaged",
        f"Received: {tmp_path}",
    ):
        assert text in str(error.value)


def test_one_that_is_whole_but_unreadable_is_not_fallen_back_from(tmp_path):
    """As with another model: the one before would be no better."""
    add(tmp_path, 1, 2)

    def other(state):
        with reading(state / "weights"):
            raise KeyError("another model")

    with pytest.raises(UnreadableError, match="epoch-000002/weights .*another model"):
        Generations(tmp_path, "figures").read(other)


def test_reads_states_that_were_written_without_checksums(tmp_path):
    add(tmp_path, 1, 2)
    for state in tmp_path.iterdir():
        (state / CHECKSUMS).unlink()
    assert read(tmp_path)[1] == 2
    (tmp_path / "epoch-000002" / "figures").write_bytes(b"")
    with pytest.warns(UserWarning, match="epoch-000002/figures cannot be read"):
        assert read(tmp_path)[1] == 1
    shutil.rmtree(tmp_path / "epoch-000001")
    with pytest.raises(
        UnreadableError, match="figures cannot be read.*Remove the folder"
    ):
        read(tmp_path)


def test_what_a_kill_leaves_is_removed(tmp_path):
    add(tmp_path, 1, 2)
    for name in (".state-aside", ".state-old"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_bytes(b"half")
    generations, epoch = read(tmp_path)
    assert epoch == 2
    generations.tidy()
    assert states(tmp_path) == ["epoch-000001", "epoch-000002"]


def test_an_error_while_writing_adds_none(tmp_path):
    generations = add(tmp_path, 1)

    def fail():
        with generations.add(2) as aside:
            (aside / "weights").write_bytes(b"half")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fail()
    assert generations.newest == tmp_path / "epoch-000001"
    assert read(tmp_path)[1] == 1


def test_is_on_the_disk_before_it_has_its_name(tmp_path, disk):
    generations = add(tmp_path, 1, 2)
    disk.clear()
    with generations.add(3) as aside:
        for name in FILES:
            (aside / name).write_bytes(b"")
    renamed = disk.index(("replace", ".state-aside", "epoch-000003"))
    before = disk[:renamed]
    for name in ("weights", "figures", ".state-aside"):
        assert ("fsync", name) in before
    # The checksums are a file that replaces, and its name is flushed with the folder.
    assert before.index(("fsync", ".state-aside")) > before.index(("fsync", "figures"))
    assert any(event[0] == "replace" and event[2] == CHECKSUMS for event in before)
    assert before[-1] == ("fsync", ".state-aside")
    # None is removed before the new one's name is on the disk.
    assert disk[renamed + 1 :] == [
        ("fsync", tmp_path.name),
        ("replace", "epoch-000001", ".state-old"),
    ]
