"""Small files, read whole and replaced whole: what every format of a log directory shares.

A reader takes bytes or a path. Writers put the new content beside the file, flush it, rename it
over the old one and flush the directory, so that a crash leaves either the old or the new file.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from kraftline.errors import NotKafka, TooLarge

Path: TypeAlias = "str | os.PathLike[str]"
Source: TypeAlias = "bytes | bytearray | memoryview | str | os.PathLike[str]"

# No small file of Kafka's is near this: a checkpoint of two million partitions is a quarter of it.
MAX_SMALL_FILE = 512 * 1024 * 1024


def load(source: Source, limit: int = MAX_SMALL_FILE) -> tuple[bytes, str | None]:
    """The bytes and, where they came from a path, its name for error messages."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source), None
    name = os.fspath(source)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise TooLarge(f"{size} bytes, where at most {limit} are expected", file=name)
            # Memory for what is there; one byte more tells whether the file grows meanwhile.
            data = file.read(size + 1)
            if len(data) > size:
                data += file.read(limit + 1 - len(data))
    except OSError as error:
        raise unreadable(name, error) from error
    if len(data) > limit:
        raise TooLarge(f"more than {limit} bytes", file=name)
    return data, name


def unreadable(name: str, error: OSError) -> NotKafka:
    """The error that says in plain words why a path cannot be read."""
    match error:
        case FileNotFoundError():
            return NotKafka(f"{name}: there is no such file or directory")
        case PermissionError():
            return NotKafka(
                f"{name}: no permission to read it; run as the user that owns the log directory"
            )
        case IsADirectoryError():
            return NotKafka(f"{name}: is a directory, where a file was expected")
        case NotADirectoryError():
            return NotKafka(f"{name}: is a file, where a directory was expected")
        case _:
            return NotKafka(f"{name}: cannot be read: {error.strerror or error}")


def unwritable(name: str, error: OSError) -> NotKafka:
    """The error that says in plain words why a path cannot be written."""
    match error:
        case FileNotFoundError():
            return NotKafka(f"{name}: its directory is not there")
        case PermissionError():
            return NotKafka(f"{name}: no permission to write there")
        case _:
            return NotKafka(f"{name}: cannot be written: {error.strerror or error}")


def shown(text: str) -> str:
    """Text that every output takes: a file's name may hold bytes that are no UTF-8, which Python
    keeps in a form that nothing can encode."""
    return text.encode(errors="backslashreplace").decode()


def vanished(error: NotKafka) -> bool:
    """Whether the path was simply gone: normal in a directory that a broker is writing."""
    return isinstance(error.__cause__, FileNotFoundError)


def write_aside(path: Path, data: bytes, *, suffix: str = ".tmp") -> None:
    """Replace the file at once: write beside it, flush, rename, flush the directory."""
    target = os.fspath(path)
    aside = target + suffix
    try:
        with open(aside, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, target)
        sync_directory(os.path.dirname(target) or ".")
    except OSError as error:
        raise unwritable(target, error) from error


def write_if_other(path: Path, data: bytes) -> bool:
    """Replace a file unless it has just these bytes; whether it was replaced."""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == len(data) and file.read() == data:
                return False
    except FileNotFoundError:
        pass
    write_aside(path, data)
    return True


def sync_directory(path: Path) -> None:
    """Make names in a directory durable: a rename alone may be lost in a crash."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
