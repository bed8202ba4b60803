"""Following a log while it is written."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kraftline.errors import NotKafka
from kraftline.records.framing import batches
from kraftline.storage import follow as follow_module
from kraftline.storage.follow import follow
from kraftline.storage.segment import Damage
from kraftline.storage.segment_write import write_segment
from tests.storage.batches import some_batches


def log(folder: Path, base: int) -> Path:
    return folder / f"{base:020d}.log"


def steps(*actions: Callable[[], object]) -> Callable[[], bool]:
    """A wait that does the next thing each time, and ends after the last."""
    left = list(actions)

    def wait() -> bool:
        if not left:
            return False
        left.pop(0)()
        return True

    return wait


def offsets(folder: Path, wait: Callable[[], bool], start: int = 0) -> list[int]:
    return [
        batch.base_offset
        for _, run in follow(folder, start, wait=wait)
        for batch in batches(run.buffer, run.start, run.end)
    ]


def append(path: Path, data: bytes) -> Callable[[], object]:
    def do() -> None:
        with path.open("ab") as file:
            file.write(data)

    return do


def test_growth_half_batches_and_new_segments_are_followed(tmp_path: Path) -> None:
    made = some_batches(9)
    first, second = log(tmp_path, 0), log(tmp_path, 12)
    wait = steps(
        append(first, made[0]),
        append(first, made[1] + made[2][:30]),
        append(first, made[2][30:]),
        lambda: None,
        append(first, made[3]),
        # The last bytes of a segment and the next segment come together.
        lambda: (append(first, made[4] + made[5])(), append(second, made[6])()),
        append(second, made[7] + made[8]),
    )
    expected = [next(iter(batches(batch))).base_offset for batch in made]
    assert offsets(tmp_path, wait) == expected


def test_following_starts_at_an_offset(tmp_path: Path) -> None:
    write_segment(log(tmp_path, 0), some_batches(6))  # offsets 0 to 11
    write_segment(log(tmp_path, 12), some_batches(6, start=12))
    assert offsets(tmp_path, steps(), start=13)[0] == 13
    assert offsets(tmp_path, steps(), start=14)[0] == 13  # the batch that holds it
    assert offsets(tmp_path, steps(), start=10)[:2] == [9, 12]
    assert offsets(tmp_path, steps(), start=24) == []


def test_following_what_is_gone_starts_at_the_oldest(tmp_path: Path) -> None:
    write_segment(log(tmp_path, 12), some_batches(2, start=12))
    assert offsets(tmp_path, steps(), start=3) == [12, 13]


def test_preallocated_zeros_are_waited_on(tmp_path: Path) -> None:
    made = some_batches(3)
    path = log(tmp_path, 0)
    path.write_bytes(made[0] + bytes(4096))

    def fill() -> None:
        with path.open("r+b") as file:
            file.seek(len(made[0]))
            file.write(made[1] + made[2])

    assert offsets(tmp_path, steps(fill)) == [0, 1, 3]


def test_a_batch_half_arrived_before_preallocated_zeros_is_waited_on(tmp_path: Path) -> None:
    made = some_batches(3)
    path = log(tmp_path, 0)
    half = made[1][:-10] + bytes(10)
    path.write_bytes(made[0] + half + bytes(4096))

    def fill() -> None:
        with path.open("r+b") as file:
            file.seek(len(made[0]))
            file.write(made[1] + made[2])

    assert offsets(tmp_path, steps(lambda: None, fill)) == [0, 1, 3]


def test_a_log_that_is_cut_back_is_told(tmp_path: Path) -> None:
    made = some_batches(3)
    path = log(tmp_path, 0)
    path.write_bytes(b"".join(made))

    def cut() -> None:
        with path.open("r+b") as file:
            file.truncate(len(made[0]))

    found: list[Damage] = []
    wait = steps(cut, append(path, made[1]))
    read = [
        batch.base_offset
        for _, run in follow(tmp_path, wait=wait, on_damage=found.append)
        for batch in batches(run.buffer, run.start, run.end)
    ]
    assert read == [0, 1, 3, 1]
    assert [damage.position for damage in found] == [len(made[0])]


def test_a_real_writer_and_a_real_reader(tmp_path: Path) -> None:
    made = some_batches(400, value_size=100)
    firsts = [next(iter(batches(batch))).base_offset for batch in made]
    done = threading.Event()

    def write() -> None:
        for n in range(0, 400, 100):
            with log(tmp_path, firsts[n]).open("wb", buffering=0) as file:
                for batch in made[n : n + 100]:
                    file.write(batch[:50])
                    file.write(batch[50:])
        done.set()

    writer = threading.Thread(target=write)
    last_look = []

    def wait() -> bool:
        if done.is_set():
            last_look.append(1)
        return len(last_look) < 2

    writer.start()
    assert offsets(tmp_path, wait) == firsts
    writer.join()


def test_a_directory_that_is_not_there_is_said_plainly(tmp_path: Path) -> None:
    with pytest.raises(NotKafka, match="no such"):
        next(follow(tmp_path / "no"))


def test_a_rolled_segment_that_ends_within_a_batch_is_told(tmp_path: Path) -> None:
    made = some_batches(4)  # offsets 0, 1-2, 3-5, 6
    log(tmp_path, 0).write_bytes(made[0] + made[1][:-3])
    log(tmp_path, 3).write_bytes(made[2] + made[3])
    found: list[Damage] = []
    read = [
        batch.base_offset
        for _, run in follow(tmp_path, wait=steps(), on_damage=found.append)
        for batch in batches(run.buffer, run.start, run.end)
    ]
    assert read == [0, 3, 6]
    assert [(d.position, d.length) for d in found] == [(len(made[0]), len(made[1]) - 3)]


def test_a_segment_that_retention_took_first_is_stepped_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_segment(log(tmp_path, 0), some_batches(2))
    write_segment(log(tmp_path, 12), some_batches(2, start=12))
    real = follow_module._segment_for

    def then_gone(folder: str, offset: int) -> int | None:
        found = real(folder, offset)
        log(tmp_path, 0).unlink(missing_ok=True)
        return found

    monkeypatch.setattr(follow_module, "_segment_for", then_gone)
    assert offsets(tmp_path, steps()) == [12, 13]
