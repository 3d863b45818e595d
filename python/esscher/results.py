"""Results: named columns of equal length that print well, plot, and turn into the table of your choice."""

from __future__ import annotations

import html
import importlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from esscher._arguments import items
from esscher._equality import Compared

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes

__all__ = ["Results"]

_ROWS_SHOWN = 12


class Results(Compared):
    """Named columns of equal length, as every study returns them.

    A column is a NumPy array: ``results["length"]``. Missing numbers are NaN, missing texts are None.

    >>> found = Results({"length": [10, 100], "output_error": [0.5, 0.05]}, title="an example")
    >>> found["output_error"]
    array([0.5 , 0.05])
    >>> found
    an example
    length  output_error
        10           0.5
       100          0.05
    """

    def __init__(self, columns: Mapping[str, Any], *, title: str = "", notes: Sequence[str] = ()) -> None:
        if not isinstance(columns, Mapping):
            found = type(columns).__name__
            raise TypeError(f"columns: expected a dictionary of columns by name, found an object of type {found}")
        self._columns: dict[str, NDArray[Any]] = {}
        for name, it in columns.items():
            if str(name) in self._columns:
                raise ValueError(f"columns: two of them are called {str(name)!r}")
            self._columns[str(name)] = _column(name, it)
        for name, values in self._columns.items():
            if values.ndim != 1:
                raise ValueError(f"column {name!r}: expected one axis, found shape {values.shape}")
        sizes = {name: len(values) for name, values in self._columns.items()}
        if len(set(sizes.values())) > 1:
            raise ValueError(f"columns of different lengths: {sizes}")
        if not isinstance(title, str):
            raise TypeError(f"title: expected a text, found an object of type {type(title).__name__}")
        self.title = title
        self.notes = tuple(items("notes", notes, "a list of texts"))
        for note in self.notes:
            if not isinstance(note, str):
                raise TypeError(f"notes: expected a list of texts, found an object of type {type(note).__name__}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __getitem__(self, name: str) -> NDArray[Any]:
        try:
            return self._columns[name]
        except KeyError:
            raise KeyError(f"no column {name!r}: the columns are {', '.join(self._columns)}") from None

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of this name."""
        return isinstance(name, str) and name in self._columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each a dictionary."""
        for index in range(len(self)):
            yield {name: values[index] for name, values in self._columns.items()}

    def to_dict(self) -> dict[str, NDArray[Any]]:
        """The columns by name."""
        return dict(self._columns)

    def to_numpy(self) -> NDArray[Any]:
        """One structured array with a field per column."""
        fields = [(name, values.dtype) for name, values in self._columns.items()]
        table = np.empty(len(self), dtype=fields)
        for name, values in self._columns.items():
            table[name] = values
        return table

    def to_polars(self) -> polars.DataFrame:
        """A polars data frame (``pip install esscher[polars]``)."""
        polars = _optional("polars", "polars")
        columns = {n: v.tolist() if v.dtype == object else v for n, v in self._columns.items()}
        return polars.DataFrame(columns)  # type: ignore[no-any-return]

    def to_pandas(self) -> pandas.DataFrame:
        """A pandas data frame (``pip install esscher[pandas]``)."""
        pandas = _optional("pandas", "pandas")
        return pandas.DataFrame(self._columns)  # type: ignore[no-any-return]

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draws the result with matplotlib (``pip install esscher[plot]``) and returns the axes.

        ``style`` goes to matplotlib's line or errorbar.
        """
        if ax is None:
            ax = _optional("matplotlib.pyplot", "plot").subplots()[1]
        elif not hasattr(ax, "get_title"):
            raise TypeError(f"ax: expected axes of matplotlib, found an object of type {type(ax).__name__}")
        self._draw(ax, **style)
        if self.title and not ax.get_title():
            ax.set_title(self.title)
        return ax

    def _draw(self, ax: Axes, **style: Any) -> None:
        """Draws into the axes: the first column of numbers across, the others up; kinds of results do better."""
        numbers = [name for name, values in self._columns.items() if values.dtype.kind in "fiu"]
        if len(numbers) < 2:
            raise ValueError(f"nothing to draw: {len(numbers)} columns of numbers, two are needed")
        across, *up = numbers
        for name in up:
            ax.plot(self[across], self[name], label=name, **style)
        ax.set_xlabel(across)
        ax.legend()

    def __repr__(self) -> str:
        lines = [[*self._columns]] + [[_text(row[name]) for name in self._columns] for row in self._shown()]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self._columns))]
        ruled = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)) for line in lines]
        return "\n".join([*([self.title] if self.title else []), *ruled, *self._left_out(), *self.notes])

    def _repr_html_(self) -> str:
        def line(tag: str, cells: Sequence[str]) -> str:
            return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        rows = [line("td", [_text(row[name]) for name in self._columns]) for row in self._shown()]
        caption = f"<caption>{html.escape(self.title)}</caption>" if self.title else ""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in [*self._left_out(), *self.notes])
        head = f"<thead>{line('th', list(self._columns))}</thead>"
        return f"<table>{caption}{head}<tbody>{''.join(rows)}</tbody></table>{notes}"

    def _shown(self) -> list[dict[str, Any]]:
        """The rows that are printed."""
        return list(itertools.islice(self, _ROWS_SHOWN))

    def _left_out(self) -> list[str]:
        more = len(self) - _ROWS_SHOWN
        return [f"… and {more} more rows"] if more > 0 else []


def _column(name: Any, values: Any) -> NDArray[Any]:
    """A column of its own: numbers as they are, texts and anything else as objects."""
    if np.ma.is_masked(values):
        raise ValueError(f"column {name!r}: some entries are masked: fill them or leave them out")
    array = np.array(values)
    if array.dtype.kind in "US":
        array = array.astype(object)
    return array


def _text(value: Any) -> str:
    """A cell as it is printed."""
    if value is None:
        return ""
    if isinstance(value, float | np.floating):
        return "" if np.isnan(value) else f"{value:.6g}"
    return str(value)


def _optional(module: str, extra: str) -> Any:
    """Imports a module of an optional extra, or says how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise ImportError(f"{name} is not installed: pip install {name}, or the extra [{extra}] of esscher") from None
