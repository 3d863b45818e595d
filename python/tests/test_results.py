"""Results: columns that print, plot and become the table of the user's choice."""

import numpy as np
import pytest

import esscher as es

RESULTS = es.Results(
    {"length": [10, 100, 1000], "error": [0.5, np.nan, 0.005], "kind": ["exact", None, "sampled"]},
    title="three <lengths>",
    notes=["a note"],
)


def test_columns_and_rows():
    assert RESULTS.names == ("length", "error", "kind")
    assert len(RESULTS) == 3
    assert [row["length"] for row in RESULTS] == [10, 100, 1000]
    assert RESULTS["length"].dtype.kind == "i"
    with pytest.raises(KeyError, match="the columns are length, error, kind"):
        RESULTS["lenght"]
    with pytest.raises(ValueError, match="different lengths"):
        es.Results({"a": [1], "b": [1, 2]})


def test_an_array_that_is_changed_later_changes_no_column():
    mine = np.array([1.0, 2.0])
    results = es.Results({"a": mine})
    mine[0] = 7.0
    assert results["a"].tolist() == [1.0, 2.0]


def test_a_column_is_in_its_results():
    assert "length" in RESULTS
    assert "lenght" not in RESULTS


def test_tables_of_other_libraries():
    assert RESULTS.to_numpy()["length"].tolist() == [10, 100, 1000]
    assert RESULTS.to_dict()["kind"].tolist() == ["exact", None, "sampled"]
    assert pytest.importorskip("polars").Series(RESULTS.to_polars()["kind"]).to_list() == ["exact", None, "sampled"]
    pytest.importorskip("pandas")
    assert RESULTS.to_pandas().shape == (3, 3)


def test_what_is_printed():
    assert repr(RESULTS).splitlines() == [
        "three <lengths>",
        "length  error     kind",
        "    10    0.5    exact",
        "   100                ",
        "  1000  0.005  sampled",
        "a note",
    ]
    page = RESULTS._repr_html_()
    assert "<caption>three &lt;lengths&gt;</caption>" in page
    assert "<td>0.005</td>" in page
    many = es.Results({"length": range(100)})
    assert "… and 88 more rows" in repr(many)
    assert "… and 88 more rows" in many._repr_html_()
    assert repr(es.Results({})) == ""


def test_plots_return_their_axes():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = es.Results({"x": [1, 2], "y": [3, 4]}, title="line").plot()
    assert (axes.get_title(), axes.get_xlabel()) == ("line", "x")
    assert es.Results({"x": [1, 2], "y": [5, 6]}).plot(ax=axes) is axes
    assert len(axes.lines) == 2
