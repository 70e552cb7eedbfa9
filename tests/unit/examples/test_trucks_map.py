"""The files of the fleet's map."""

import importlib.util
import json
from pathlib import Path

from places import PLACES

ROOT = Path(__file__).parents[3]
TOOL = ROOT / "tools" / "generate_fleet_places.py"
ASSETS = ROOT / "src" / "headrace" / "console" / "assets" / "fleet"


def test_places_are_those_of_the_example():
    """Is places.json what the tool makes of the example?"""
    spec = importlib.util.spec_from_file_location("generate_fleet_places", TOOL)
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)

    assert tool.render() == tool.TARGET.read_text()


def test_the_basemap_has_the_ground_of_all_places():
    """Do all places of the fleet lie on the basemap, does every ring name lines that are there, and is it small?"""
    text = (ASSETS / "basemap.json").read_text()
    basemap = json.loads(text)
    west, south, east, north = basemap["bounds"]

    assert all(west < place.lon < east and south < place.lat < north for place in PLACES.values())
    used = {arc if arc >= 0 else ~arc for country in basemap["countries"] for ring in country["rings"] for arc in ring}
    assert used == set(range(len(basemap["arcs"])))
    assert len(text.encode()) < 300_000
    assert "Natural Earth" in basemap["origin"]


def test_nothing_comes_from_elsewhere():
    """Does no file of the map or the explorer name another host?"""
    for path in [*ASSETS.glob("*.js"), *ASSETS.glob("*.css"), *(ASSETS.parent / "explorer").iterdir()]:
        assert "http://" not in path.read_text(), path
        assert "https://" not in path.read_text(), path
