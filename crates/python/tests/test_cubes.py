"""Cubes: queries as labelled frames, loads and changes."""

import decimal
import subprocess
import sys

import pytest

import warpcube

DEFINITION = """\
cube: sales
facts: {file: sales.csv, value: revenue}
value: {type: decimal(2)}
dimensions:
  Region: {column: region}
  Product: {column: product}
"""


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "d"
    subprocess.run([sys.executable, "-m", "warpcube", "cube", "demo", str(folder)], check=True, capture_output=True)
    return folder / "plan.cube"


def test_queries_are_labelled_frames(demo, db):
    tab = db.cube(demo).query("rows Europe, children(Europe) cols Version where Margin, FY26")
    frame = tab.df()
    assert frame.index.name == "Region" and frame.columns.name == "Version" and frame.index[0] == "Europe"
    cells = tab.arrow().to_pylist()
    shown = sorted(float(value) for value in frame.to_numpy().ravel() if value is not None)
    assert shown == sorted(float(cell["value"]) for cell in cells) and len(shown) > 3
    assert db.sql("SELECT count(*) FROM tab").fetchall() == [(len(cells),)]
    assert "Europe" in repr(tab) and "<table" in tab._repr_html_()


def test_pages_and_several_axes_have_several_levels(demo, db):
    frame = db.cube(demo).query("rows children(Europe) * children(Margin) cols children(FY26) where Budget").df()
    assert frame.index.names == ["Region", "Account"] and frame.columns.name == "Month"
    assert len(set(frame.index.get_level_values(1))) == 2


def test_other_answers_and_errors(demo, db):
    cube = db.cube(demo)
    facts = cube.query("facts at France, Cost, Actual, 2026-03")
    assert facts.num_rows > 0
    with pytest.raises(warpcube.ProgrammingError) as error:
        cube.query("rows Euro")
    assert error.value.code == "CUBE-001"
    with pytest.raises(warpcube.Error):
        db.cube(demo.parent / "nowhere")


def test_cubes_are_made_refreshed_and_changed(db, tmp_path):
    (tmp_path / "sales.csv").write_text("region,product,revenue\nnorth,a,1.50\nsouth,b,2.25\n")
    (tmp_path / "sales.yaml").write_text(DEFINITION)
    cube = db.create_cube(tmp_path / "sales.yaml", tmp_path / "sales.cube")
    assert cube.query("rows Region cols Product").df().loc["north", "a"] == decimal.Decimal("1.50")
    with (tmp_path / "sales.csv").open("a") as facts:
        facts.write("north,a,0.25\n")
    assert cube.refresh()["cells"] == 2
    assert cube.query("rows Region cols Product").df().loc["north", "a"] == decimal.Decimal("1.75")
    with pytest.raises(warpcube.Error):
        db.create_cube(tmp_path / "sales.yaml", tmp_path / "sales.cube")
