"""How far a statement is, in terminals and notebooks."""

from __future__ import annotations

import sys
import time

_LATE = 1.0
"""Seconds after which a statement takes long."""
_WIDTH = 30


class Bar:
    """Writes how far a statement is to the standard error, once it takes long. Its line is taken away at the end."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._written = 0

    def __call__(self, done: int, total: int, is_loading: bool) -> None:
        """Takes rows read and bytes loaded, and how many there are, 0 if that is not known."""
        seconds = time.monotonic() - self._start
        if seconds < _LATE:
            return
        share = min(done / total, 1.0) if total else 0.0
        bar = "#" * round(share * _WIDTH)
        told = f"{share:4.0%}" if total else "    "
        self._write(f"[{bar:<{_WIDTH}}] {told} {seconds:.0f} s{' loading' if is_loading else ''}")

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._written:
            self._write("")
            sys.stderr.write("\r")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text:<{self._written}}")
        sys.stderr.flush()
        self._written = len(text)


class Silence:
    """No bar: the standard error is neither a terminal nor a notebook's."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def bar() -> Bar | Silence:
    """A bar where a person sees it."""
    stream = sys.stderr
    is_seen = stream is not None and (stream.isatty() or type(stream).__module__.startswith("ipykernel"))
    return Bar() if is_seen else Silence()
