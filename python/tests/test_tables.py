"""Tables: data frames and Parquet files give the program's bytes on the same table as CSV."""

import numpy as np
import pytest

import bitfed
from bitfed.recipe import toml_text

RECIPE = {
    "name": "table",
    "seed": 5,
    "data": {"label": "kind", "person": "who,where", "ignore": "note", "partition": {"kind": "column"}},
    "model": {"name": "tm", "clauses": 10},
    "method": {"name": "fedtmos"},
    "client": {"epochs": 3},
}


@pytest.fixture(scope="module")
def frame():
    """A table with all that tables have: integers as classes, flags, gaps, a person of two columns."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    kind = rng.integers(8, 12, 240)
    table = pandas.DataFrame({
        "who": rng.integers(0, 2, 240), "where": rng.choice(["home", "work"], 240),
        "height": (kind % 2 + rng.normal(0, 0.3, 240)).astype(np.float32), "weight": kind + rng.normal(0, 0.3, 240),
        "well": kind > 9, "steps": rng.integers(0, 9000, 240), "note": "a, \"quoted\"\nnote", "kind": kind,
    })
    table.loc[::50, "weight"] = np.nan
    return table


@pytest.fixture(scope="module")
def expected(frame, tiny, summary_of):
    """The program on the same table as CSV."""
    frame.astype({"well": int}).to_csv(tiny / "frame.csv", index=False)
    data = dict(RECIPE["data"], file="frame.csv")
    (tiny / "frame.toml").write_text(toml_text(dict(RECIPE, data=data)))
    return summary_of(tiny / "frame.toml", tiny / "from-csv")


def test_a_data_frame_is_the_programs_table(frame, expected):
    result = bitfed.run(RECIPE, frame, progress=False)
    assert result.model_sha256 == expected["model_sha256"]
    assert result.accuracy == expected["accuracy"]
    assert result.summary["notes"] == expected["notes"]
    assert result.model.classes.tolist() == [8, 9, 10, 11]


def test_predictions_are_the_frames_own_labels(frame, expected):
    pandas, pyarrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    recipe = dict(RECIPE, method={"name": "fedtm-bank"}, model={"name": "tm", "clauses": 20})
    whole = frame.dropna()
    gapped = whole.kind.astype(float).where(np.arange(len(whole)) % 9 > 0)
    flags, words = whole.kind > 9, whole.kind.map({8: " a", 9: "b,\"c", 10: "é", 11: "10"})
    for labels in (whole.kind, gapped, flags, flags.astype("boolean").where(gapped.notna()), words,
                   words.astype("category"), whole.kind.astype("category"), whole.kind.astype("Int64"),
                   whole.kind.astype(np.uint8)):
        table = whole.assign(kind=labels)
        tables = [table, pyarrow.Table.from_pandas(table, preserve_index=False)]
        results = [bitfed.run(recipe, data, progress=False) for data in tables]
        for result in results:
            predicted, known = result.model.predict(whole), labels.notna().to_numpy()
            assert np.mean(predicted[known] == labels[known].to_numpy()) > 0.6
            assert set(predicted) <= set(labels[known])
        # Text in the program's model.
        assert all(isinstance(name, str) for name in results[0].summary["class_names"])


def test_labels_of_several_types_stay_what_they_are(frame):
    labels = frame.kind.map({8: 1, 9: "a", 10: 2.5, 11: "b"}).astype(object)
    classes = bitfed.run(RECIPE, frame.assign(kind=labels), progress=False).model.classes.tolist()
    assert classes == [1, 2.5, "a", "b"] and isinstance(classes[0], int)


def test_a_query_of_polars_is_run(frame, expected):
    pyarrow = pytest.importorskip("pyarrow")

    class LazyFrame:
        columns = list(frame.columns)

        def collect(self):
            return pyarrow.Table.from_pandas(frame)

    assert bitfed.run(RECIPE, LazyFrame(), progress=False).model_sha256 == expected["model_sha256"]


def test_spaces_around_the_name_of_the_label(frame):
    pyarrow = pytest.importorskip("pyarrow")
    spaced = frame.rename(columns={"kind": " kind"})
    for table in (spaced, pyarrow.Table.from_pandas(spaced)):
        assert bitfed.run(RECIPE, table, progress=False).model.classes.tolist() == [8, 9, 10, 11]


def test_spaces_in_a_list_of_columns(frame, expected):
    spaced = dict(RECIPE, data=RECIPE["data"] | {"ignore": " note , steps", "person": "who, where"})
    tight = dict(RECIPE, data=RECIPE["data"] | {"ignore": "note,steps"})
    assert bitfed.run(spaced, frame, progress=False).model_sha256 == bitfed.run(tight, frame, progress=False).model_sha256


def test_flags_with_gaps_are_numbers(frame, expected):
    flags = frame.astype({"well": "boolean"})
    assert bitfed.run(RECIPE, flags, progress=False).model_sha256 == expected["model_sha256"]
    flags.loc[3, "well"] = None
    assert "6 rows with empty cells" in str(bitfed.run(RECIPE, flags, progress=False).summary["notes"])


def test_a_parquet_file_federates_from_one_recipe(frame, expected, tmp_path):
    pytest.importorskip("pyarrow")
    frame.astype({"where": "category"}).to_parquet(tmp_path / "frame.parquet")
    by_recipe = dict(RECIPE, data=dict(RECIPE["data"], file=str(tmp_path / "frame.parquet")))
    (tmp_path / "parquet.toml").write_text(toml_text(by_recipe))
    for result in (bitfed.run(tmp_path / "parquet.toml", progress=False),
                   bitfed.run(RECIPE, tmp_path / "frame.parquet", progress=False),
                   bitfed.run(RECIPE, progress=False, data_dir=tmp_path, set={"data.file": "frame.parquet"})):
        assert result.model_sha256 == expected["model_sha256"]


def test_the_index_of_a_data_frame_is_no_column(frame, expected, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    indexed = frame.set_index(np.arange(240)[::-1])
    indexed.to_parquet(tmp_path / "indexed.parquet")
    for table in (indexed, tmp_path / "indexed.parquet", pyarrow.Table.from_pandas(indexed)):
        assert bitfed.run(RECIPE, table, progress=False).model_sha256 == expected["model_sha256"]
    # Saved as a column it is refused, not learned from.
    with pytest.raises(bitfed.InputError, match="column 'index' counts the rows"):
        bitfed.run(RECIPE, frame.reset_index(), progress=False)


def test_columns_named_by_numbers_and_of_arrow(frame):
    pyarrow = pytest.importorskip("pyarrow")
    frame = frame.dropna().rename(columns={"height": 0, "weight": 1})
    model = bitfed.run(RECIPE, frame, progress=False).model
    expected = model.predict(frame[[0, 1, "well", "steps"]].to_numpy(np.float32))
    assert (model.predict(frame[[*reversed(frame.columns)]]) == expected).all()
    table = pyarrow.Table.from_pandas(frame[["steps", "well", 1, 0]].astype(float).rename(columns=str))
    assert (model.predict(table) == expected).all()


def test_a_run_on_parquet_is_resumed(frame, expected, tmp_path):
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "frame.parquet")
    bitfed.run(RECIPE, tmp_path / "frame.parquet", out=tmp_path / "run", progress=False)
    (tmp_path / "run" / "summary.json").unlink()
    again = bitfed.run(RECIPE, tmp_path / "frame.parquet", out=tmp_path / "run", resume=True, progress=False)
    assert again.model_sha256 == expected["model_sha256"]


def test_columns_are_found_by_name(frame, tmp_path):
    result = bitfed.run(RECIPE, frame, progress=False)
    assert "weight >" in str(result.model.rules()) or "height >" in str(result.model.rules())
    names = ["height", "weight", "well", "steps"]
    with pytest.raises(ValueError, match="row 0, column 1 is nan"):
        result.model.predict(frame)
    frame = frame.dropna()
    expected = result.model.predict(frame[names].to_numpy(np.float32))
    assert (result.model.predict(frame[[*reversed(frame.columns)]]) == expected).all()
    result.model.save(tmp_path / "model.safetensors")
    assert (bitfed.load(tmp_path / "model.safetensors").predict(frame) == expected.astype(str)).all()
    with pytest.raises(ValueError, match="found no column 'steps'"):
        result.model.predict(frame.drop(columns="steps"))


def test_bad_tables_are_one_line(frame, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    with pytest.raises(bitfed.InputError, match="no column .*'kinds'"):
        bitfed.run(dict(RECIPE, data=dict(RECIPE["data"], label="kinds")), frame)
    with pytest.raises(bitfed.InputError, match="column 'where'"):
        bitfed.run(dict(RECIPE, data=dict(RECIPE["data"], person="who")), frame)
    with pytest.raises(ValueError, match="found no data.label"):
        bitfed.run({"model": {"name": "tm"}}, frame)
    (tmp_path / "junk.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(ValueError, match="junk.parquet: found no table"):
        bitfed.run(RECIPE, tmp_path / "junk.parquet")
    parquet.write_table(pyarrow.table({"kind": [1, 2], "a": [[1.0], [2.0]]}), tmp_path / "lists.parquet")
    with pytest.raises(ValueError, match="lists.parquet: found no table of numbers and strings"):
        bitfed.run({"data": {"label": "kind"}}, tmp_path / "lists.parquet")
    with pytest.raises(bitfed.InputError, match="absent.parquet"):
        bitfed.run(dict(RECIPE, data=dict(RECIPE["data"], file="absent.parquet")))


def test_the_program_says_what_to_do(frame, tiny, tmp_path):
    import os
    import subprocess

    path = os.environ.get("BITFED_PROGRAM")
    if not path:
        pytest.skip("BITFED_PROGRAM is not set")
    (tmp_path / "x.parquet").write_bytes(b"PAR1")
    done = subprocess.run([path, "data", "info", "x.parquet"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "pandas.read_parquet('x.parquet').to_csv" in done.stderr
