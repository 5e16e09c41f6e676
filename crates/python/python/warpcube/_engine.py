"""The shared object with the engine, or what stands in its place where it is not built for this machine."""

from __future__ import annotations

from typing import Any

from ._errors import NotSupportedError


class _Absent:
    """No engine: every use of it is refused by name. A server can be asked all the same."""

    def __init__(self, reason: ImportError) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        raise NotSupportedError(
            "the engine is not built for this machine, and databases are not opened here; "
            f"warpcube.connect('grpc://HOST:PORT', token=…) asks a server ({self._reason})"
        )


try:
    from . import _native as native

    VERSION: str = native.__version__
except ImportError as reason:
    native, VERSION = _Absent(reason), "without an engine"

IS_THERE = not isinstance(native, _Absent)
"""Whether databases can be opened in this process."""
