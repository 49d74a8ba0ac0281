"""Recipes: TOML text from dictionaries, files or the names of those that come with the package."""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recipes"

# Keys of [data] that say where samples come from: arrays take their place.
_SOURCES = ("name", "file", "folder", "format", "label", "labels", "person", "ignore", "image", "label_bytes", "size",
            "channels", "class_names", "test_file", "test_labels", "test_person")


def recipes() -> list[str]:
    """The names of the recipes that come with the package; `bitfed.run` takes them."""
    return sorted(path.stem for path in FOLDER.glob("*.toml"))


def is_source(key: str) -> bool:
    """Whether a key such as "data.file" says where samples come from."""
    return key.startswith("data.") and key.removeprefix("data.") in _SOURCES


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's, but for characters beyond 16 bits and DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_quoted(str(k))} = {toml_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, int) or hasattr(value, "__index__"):
        return str(int(value))
    if value is None:
        raise ValueError("recipe: found None, expected a value: leave the key out for its default")
    if isinstance(value, os.PathLike):
        return _quoted(os.fspath(value))
    if not isinstance(value, Real):
        raise ValueError(f"recipe: found {value!r}, expected a number, a string, a list or a dictionary")
    return repr(float(value))


def toml_text(recipe: Mapping[str, Any]) -> str:
    """One line per key; tables below the top in one line each, arrays of tables written out."""
    lines = [f"{_quoted(k)} = {toml_value(v)}" for k, v in recipe.items() if not isinstance(v, Mapping)]
    for name, table in recipe.items():
        if not isinstance(table, Mapping):
            continue
        is_tables = {k: isinstance(v, list) and v and isinstance(v[0], Mapping) for k, v in table.items()}
        lines.append(f"[{_quoted(name)}]")
        lines += [f"{_quoted(k)} = {toml_value(v)}" for k, v in table.items() if not is_tables[k]]
        for key in (k for k, tables in is_tables.items() if tables):
            for entry in table[key]:
                lines.append(f"[[{_quoted(name)}.{_quoted(key)}]]")
                lines += [f"{_quoted(k)} = {toml_value(v)}" for k, v in entry.items()]
    return "\n".join(lines) + "\n"


@dataclass
class Recipe:
    text: str
    source: str  # for errors
    default_name: str = "run"

    def data(self) -> dict[str, Any]:
        """The [data] table; empty for text that is no recipe, which the library will say."""
        try:
            data = tomllib.loads(self.text).get("data", {})
        except tomllib.TOMLDecodeError:
            return {}
        return data if isinstance(data, dict) else {}

    def without_sources(self) -> "Recipe":
        """The recipe for arrays. It is written anew only if it says where its data comes from."""
        data = self.data()
        if not any(key in data for key in _SOURCES):
            return self
        recipe = tomllib.loads(self.text)
        recipe["data"] = {k: v for k, v in data.items() if k not in _SOURCES}
        return Recipe(toml_text(recipe), self.source, self.default_name)


def read_recipe(recipe: str | Path | Mapping[str, Any]) -> Recipe:
    """A dictionary, a file, the name of a recipe of the package, or TOML text."""
    if isinstance(recipe, Mapping):
        return Recipe(toml_text(recipe), "recipe")
    if not isinstance(recipe, (str, os.PathLike)):
        raise TypeError(f"recipe: found {type(recipe).__name__}, expected a file, a dictionary, TOML text or a name")
    if isinstance(recipe, str) and ("\n" in recipe or ("=" in recipe and not os.path.exists(recipe))):
        return Recipe(recipe, "recipe")
    # The name of a recipe is one also where a file, such as a script, is called the same.
    path = FOLDER / f"{recipe}.toml" if recipe in recipes() else Path(recipe)
    try:
        return Recipe(path.read_text(encoding="utf-8"), str(path), path.stem)
    except UnicodeDecodeError:
        raise ValueError(f"{recipe}: found bytes that are not UTF-8, expected a recipe") from None
    except OSError as error:
        raise FileNotFoundError(
            f"{recipe}: found no such file, expected a recipe or one of {', '.join(recipes())}"
        ) from error
