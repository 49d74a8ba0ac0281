"""Tables: data frames and Parquet files, read by the rules of the program's CSV reader."""

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import _core


def is_parquet(source: Any) -> bool:
    return isinstance(source, (str, Path)) and str(source).endswith(".parquet")


def is_table(source: Any) -> bool:
    """A Parquet file, or a table of pandas, polars or pyarrow."""
    return is_parquet(source) or hasattr(source, "columns") or hasattr(source, "column_names")


def read_table(source: Any, data: Mapping[str, Any]) -> Any:
    """The data set of a table. `data`: the recipe's [data], whose label, person and ignore name columns."""
    name = str(source) if is_parquet(source) else "table"
    if "label" not in data:
        raise ValueError(f"{name}: found no data.label in the recipe, expected the name of the column to predict")
    for key in ("label", "person", "ignore"):
        if not isinstance(data.get(key, ""), str):
            raise ValueError(f"data.{key}: found {data[key]!r}, expected a string"
                             + (" of names: 'a,b'" if key == "ignore" else ", the name of a column"))
    ignored = data.get("ignore", "")
    return _core.parse_table(
        text=_csv(source, name),
        name=name,
        label=data["label"],
        person=data.get("person", ""),
        ignore=ignored.split(",") if ignored else [],
    )


def _csv(source: Any, name: str) -> bytes:
    if hasattr(source, "to_csv"):  # pandas
        types = {"bool": "uint8", "boolean": "Int8"}  # the second one with gaps
        flags = {column: types[str(dtype)] for column, dtype in source.dtypes.items() if str(dtype) in types}
        return source.astype(flags).to_csv(index=False).encode()
    try:
        import pyarrow
        from pyarrow import csv, parquet
    except ImportError as error:
        raise ImportError(f"{name}: Parquet is read by pyarrow, which is not installed: pip install pyarrow") from error
    try:
        table = parquet.read_table(source) if is_parquet(source) else source
        table = table.to_arrow() if hasattr(table, "to_arrow") else table  # polars
        # The index of a data frame, which pandas stores beside its columns, is no column.
        table = table.drop_columns([name for name in table.column_names if re.fullmatch(r"__index_level_\d+__", name)])
        for index, column in enumerate(table.schema):
            if pyarrow.types.is_boolean(column.type):
                table = table.set_column(index, column.name, table.column(index).cast(pyarrow.uint8()))
            elif pyarrow.types.is_dictionary(column.type):
                table = table.set_column(index, column.name, table.column(index).cast(column.type.value_type))
        text = io.BytesIO()
        csv.write_csv(table, text)
    except pyarrow.ArrowException as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"{name}: found no table of numbers and strings: {first}") from error
    return text.getvalue()


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
