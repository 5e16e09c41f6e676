"""Cubes and cross-tabs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

from ._engine import native as _native

if TYPE_CHECKING:
    import pandas
    import pyarrow


class Cube:
    """A cube in a folder, as it is there whenever it is asked."""

    def __init__(self, native: _native.Cube) -> None:
        self._native = native

    def query(self, text: str) -> CrossTab | pyarrow.Table | str:
        """Asks the cube: ``cube.query("rows Europe, children(Europe) cols Version where Margin")``.

        Returns:
            A cross-tab. A query that begins with ``facts``, ``base`` or the like gives a table of PyArrow, and one with
            ``explain at`` a text, as the command ``warpcube cube query`` does.
        """
        answer = self._native.query(text)
        if isinstance(answer, _native.CubeTable):
            return CrossTab(answer)
        if isinstance(answer, _native.Rows):
            import pyarrow

            return pyarrow.table(answer)
        return answer

    def refresh(self, *, rebuild: bool = False) -> dict[str, int]:
        """Loads the cube again from the source of its definition. With ``rebuild`` what was made by hand goes.

        Returns:
            The numbers of ``rows``, ``rows_loaded``, ``rows_aside`` and filled ``cells``.
        """
        return self._native.refresh(rebuild)

    def change(self, text: str) -> int:
        """Changes the dimensions by statements of the language of changes, all of them or none. Gives their number."""
        return self._native.change(text)


class CrossTab:
    """The cells that a query of a cube asks for, with the labels of rows and columns."""

    def __init__(self, native: _native.CubeTable) -> None:
        self._native = native

    @property
    def warnings(self) -> list[str]:
        """Names of the query that stand for one of several elements."""
        return self._native.warnings

    def df(self) -> pandas.DataFrame:
        """The cross-tab as a frame of pandas: rows and columns are labelled by their elements, pages are the outermost
        rows. Values of decimals are :class:`decimal.Decimal`, empty cells are missing."""
        import pandas

        tab = self._native.cross_tab()
        page_axes, row_axes, column_axes = tab["axes"]
        frames = []
        for page in tab["pages"]:
            columns = pandas.MultiIndex.from_tuples(page["columns"], names=column_axes) if column_axes else [""]
            labels = [page["labels"] + row for row, _ in page["rows"]]
            names = page_axes + row_axes
            index = pandas.MultiIndex.from_tuples(labels, names=names) if names else None
            frames.append(pandas.DataFrame([cells for _, cells in page["rows"]], index=index, columns=columns))
        frame = pandas.concat(frames) if frames else pandas.DataFrame()
        for axis in ("index", "columns"):
            labels = getattr(frame, axis)
            if isinstance(labels, pandas.MultiIndex) and labels.nlevels == 1:
                setattr(frame, axis, labels.get_level_values(0))
        return frame

    def arrow(self) -> pyarrow.Table:
        """The cells in long form: a column for each dimension, ``measure``, ``value`` and ``text``."""
        import pyarrow

        return pyarrow.table(self._native.rows())

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._native.rows().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return self._native.text(shutil.get_terminal_size((120, 24)).columns).rstrip()

    def _repr_html_(self) -> str:
        return self.df().to_html()
