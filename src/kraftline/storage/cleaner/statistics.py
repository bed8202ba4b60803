"""What a cleaning read, kept and took: for the log's line about it, and for metrics."""

from __future__ import annotations


class CleaningStatistics:
    """Counted while a log is cleaned; times are in seconds of a clock that only rises."""

    __slots__ = (
        "began",
        "bytes_read",
        "bytes_written",
        "ended",
        "invalid_records",
        "map_bytes_read",
        "map_ended",
        "map_records_read",
        "map_utilization",
        "records_read",
        "records_written",
    )

    def __init__(self, began: float) -> None:
        self.began = self.map_ended = self.ended = began
        self.bytes_read = self.bytes_written = 0
        self.records_read = self.records_written = 0
        self.map_bytes_read = self.map_records_read = 0
        self.invalid_records = 0
        self.map_utilization = 0.0

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def words(self, name: str, first: int, end: int) -> str:
        """One line for the person who reads the log."""
        saved = 100 * (1 - self.bytes_written / self.bytes_read) if self.bytes_read else 0.0
        text = (
            f"{name} is clean from {first} to {end}: {self.records_written:,} of "
            f"{self.records_read:,} records and {self.bytes_written:,} of {self.bytes_read:,} "
            f"bytes stay ({saved:.1f} % less), in {self.seconds:.1f} s; the map was "
            f"{100 * self.map_utilization:.1f} % full"
        )
        if self.invalid_records:
            text += f"; {self.invalid_records:,} records without a key went"
        return text
