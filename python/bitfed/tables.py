"""Tables: data frames and Parquet files, read by the rules of the program's CSV reader."""

import csv
import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .data import Parts


def is_parquet(source: Any) -> bool:
    return isinstance(source, (str, Path)) and str(source).endswith(".parquet")


def is_table(source: Any) -> bool:
    """A Parquet file, or a table of pandas, polars or pyarrow."""
    return is_parquet(source) or hasattr(source, "columns") or hasattr(source, "column_names")


def read_table(source: Any, data: Mapping[str, Any]) -> Parts:
    """The data set of a table, with its labels as they are there. `data`: the recipe's [data], whose label, person and
    ignore name columns."""
    name = str(source) if is_parquet(source) else "table"
    if "label" not in data:
        raise ValueError(f"{name}: found no data.label in the recipe, expected the name of the column to predict")
    for key in ("label", "person", "ignore"):
        if not isinstance(data.get(key, ""), str):
            raise ValueError(f"data.{key}: found {data[key]!r}, expected a string"
                             + (" of names: 'a,b'" if key == "ignore" else ", the name of a column"))
    unread = [key for key in ("image", "size", "channels", "class_names") if key in data]
    if unread:
        raise ValueError(f"data.{unread[0]}: found it with a table, expected it for images and arrays alone")
    table = source if hasattr(source, "to_csv") else _arrow(source, name)
    samples = _core.parse_table(
        text=_csv(table, name),
        name=name,
        label=data["label"],
        person=data.get("person", ""),
        ignore=data.get("ignore", ""),
    )
    return Parts(samples, None, _own_labels(table, data["label"], samples.class_names))


def _own_labels(table: Any, label: str, class_names: list[str]) -> np.ndarray:
    """The classes as the table has them: numbers and flags, which are text in CSV."""
    is_frame = hasattr(table, "to_csv")
    names = table.columns if is_frame else table.column_names
    column = next(name for name in names if str(name).strip(" \t") == label)  # as CSV is read
    if is_frame:
        distinct = table[[column]].dropna().drop_duplicates()
        values = distinct[column].tolist()
    else:
        distinct = table.select([column]).drop_null().group_by([column]).aggregate([])
        values = distinct.column(0).to_pylist()
    texts = [row[0].strip(" \t") for row in csv.reader(io.StringIO(_csv(distinct, label).decode(), newline=""))][1:]
    own = dict(zip(texts, values)) if len(texts) == len(values) else {}
    classes = [own.get(name, name) for name in class_names]
    return np.array(classes, dtype=None if len({type(value) for value in classes}) == 1 else object)


def _arrow(source: Any, name: str) -> Any:
    """A Parquet file, or a table of polars, as one of pyarrow."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(f"{name}: Parquet is read by pyarrow, which is not installed: pip install pyarrow") from error
    try:
        table = parquet.read_table(source) if is_parquet(source) else source
        table = table.collect() if hasattr(table, "collect") else table  # a polars query that has not run yet
        table = table.to_arrow() if hasattr(table, "to_arrow") else table  # polars
        for index, column in enumerate(table.schema):
            if pyarrow.types.is_dictionary(column.type):
                table = table.set_column(index, column.name, table.column(index).cast(column.type.value_type))
    except pyarrow.ArrowException as error:
        raise _no_table(name, error) from error
    # The index of a data frame, which pandas stores beside its columns, is no column.
    return table.drop_columns([name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)])


def _csv(table: Any, name: str) -> bytes:
    """Flags are numbers, as a program writes them."""
    if hasattr(table, "to_csv"):  # pandas
        types = {"bool": "uint8", "boolean": "Int8"}  # the second one with gaps
        flags = {column: types[str(dtype)] for column, dtype in table.dtypes.items() if str(dtype) in types}
        return table.astype(flags).to_csv(index=False).encode()
    import pyarrow.csv

    try:
        for index, column in enumerate(table.schema):
            if pyarrow.types.is_boolean(column.type):
                table = table.set_column(index, column.name, table.column(index).cast(pyarrow.uint8()))
        text = io.BytesIO()
        pyarrow.csv.write_csv(table, text)
    except pyarrow.ArrowException as error:
        raise _no_table(name, error) from error
    return text.getvalue()


def _no_table(name: str, error: Exception) -> ValueError:
    return ValueError(f"{name}: found no table of numbers and strings: {str(error).splitlines()[0]}")


def by_name(X: Any, columns: list[str]) -> Any:
    """The columns of a data frame that a model was trained on, in its order; anything else as it is. Columns of arrays
    have only numbers."""
    unnamed = columns == [f"column {i + 1}" for i in range(len(columns))]
    if unnamed or not hasattr(X, "columns"):
        return X
    found = {str(name): name for name in getattr(X, "column_names", X.columns)}  # pandas takes numbers as names, too
    missing = [name for name in columns if name not in found]
    if missing:
        raise ValueError(f"X: found no column '{missing[0]}', expected {len(columns)}: {', '.join(columns)}")
    chosen = [found[name] for name in columns]
    return X.select(chosen) if hasattr(X, "column_names") else X[chosen]
