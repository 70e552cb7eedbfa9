"""Make the console's basemap from Natural Earth, once: land, borders, lakes, rivers and towns of the fleet's region.

    python tools/make_basemap.py countries-10m.json ne_50m_lakes.json ne_50m_rivers_lake_centerlines.json \
        ne_50m_urban_areas.json

The first is TopoJSON as the package `world-atlas` has it, the others are GeoJSON; README.md beside the result says
where they come from. Borders stay shared: lines are simplified before they are put together to countries.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from math import hypot
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent.parent / "src" / "headrace" / "console" / "assets" / "fleet" / "basemap.json"

Point = tuple[float, float]
WEST, SOUTH, EAST, NORTH = -13.0, 34.5, 31.0, 61.0
"""What is drawn with care; beyond it a country has only a rough outline."""
UNIT = 0.002
"""Coordinates are whole numbers of so many degrees."""
_FINE, _ROUGH = 0.006, 0.6
"""How far a line may be moved, in degrees."""
_ISLET = 0.004
"""Islands and lakes of fewer square degrees are left out."""
_RIVER_RANK = 6
_LABEL_SHARE = 0.4
"""A country is named if so much of it lies in the region."""


def main() -> int:
    """Read, simplify and write."""
    countries, lakes, rivers, towns = (json.loads(Path(name).read_text()) for name in sys.argv[1:5])
    document = {
        "origin": "Natural Earth (public domain); made by tools/make_basemap.py",
        "unit": UNIT,
        "bounds": [WEST, SOUTH, EAST, NORTH],
        **_land(countries),
        "lakes": [_packed(ring) for ring in _rings(lakes) if _area(ring) >= _ISLET],
        "rivers": [_packed(line) for line in _lines(rivers)],
        "towns": [_packed(ring) for ring in _rings(towns)],
    }
    TARGET.write_text(json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n")
    print(f"{TARGET.name}: {TARGET.stat().st_size:,} bytes")
    return 0


# --- land and borders


def _land(topology: dict[str, Any]) -> dict[str, Any]:
    """Arcs, countries as rings of arcs, and which arcs are borders between two of them."""
    arcs = [_simplified(arc) for arc in _arcs(topology)]
    countries = []
    for geometry in topology["objects"]["countries"]["geometries"]:
        polygons = geometry["arcs"] if geometry["type"] == "MultiPolygon" else [geometry["arcs"]]
        near = [polygon for polygon in polygons if _is_wanted(_joined(polygon[0], arcs))]
        if near:
            shown = [ring for polygon in near for ring in polygon]
            largest = max((_joined(polygon[0], arcs) for polygon in polygons), key=_area)
            countries.append({"name": geometry["properties"]["name"], "label": _label(largest), "rings": shown})
    uses = Counter(_plain(arc) for country in countries for ring in country["rings"] for arc in ring)
    numbers = {arc: number for number, arc in enumerate(sorted(uses))}
    for country in countries:
        country["rings"] = [[numbers[arc] if arc >= 0 else ~numbers[~arc] for arc in ring] for ring in country["rings"]]
    return {
        "arcs": [_packed(arcs[arc]) for arc in sorted(uses)],
        "countries": countries,
        "borders": [numbers[arc] for arc in sorted(uses) if uses[arc] > 1],
    }


def _arcs(topology: dict[str, Any]) -> Iterator[list[Point]]:
    (x_scale, y_scale), (x_shift, y_shift) = topology["transform"]["scale"], topology["transform"]["translate"]
    for arc in topology["arcs"]:
        x = y = 0
        line = []
        for dx, dy in arc:
            x, y = x + dx, y + dy
            line.append((x * x_scale + x_shift, y * y_scale + y_shift))
        yield line


def _plain(arc: int) -> int:
    """An arc whichever way it is run through; ~n is arc n backwards."""
    return arc if arc >= 0 else ~arc


def _joined(ring: Iterable[int], arcs: list[list[Point]]) -> list[Point]:
    return [point for arc in ring for point in (arcs[arc] if arc >= 0 else arcs[~arc][::-1])]


def _is_wanted(ring: list[Point]) -> bool:
    return _is_near(ring) and _area(ring) >= _ISLET


def _label(ring: list[Point]) -> list[float] | None:
    """Where a country's name stands, and how large it is in degrees; None if most of it lies elsewhere."""
    inside = [(min(max(x, WEST), EAST), min(max(y, SOUTH), NORTH)) for x, y in ring]
    if _area(inside) < _LABEL_SHARE * _area(ring):
        return None
    double = 0.0
    x_sum = y_sum = 0.0
    for (xa, ya), (xb, yb) in zip(inside, [*inside[1:], inside[0]], strict=True):
        cross = xa * yb - xb * ya
        double += cross
        x_sum += (xa + xb) * cross
        y_sum += (ya + yb) * cross
    return [round(x_sum / (3 * double), 2), round(y_sum / (3 * double), 2), round(_area(inside) ** 0.5, 1)]


# --- what lies on it


def _rings(collection: dict[str, Any]) -> Iterator[list[Point]]:
    for feature in collection["features"]:
        geometry = feature["geometry"]
        polygons = geometry["coordinates"] if geometry["type"] == "MultiPolygon" else [geometry["coordinates"]]
        for polygon in polygons:
            ring = _simplified([(x, y) for x, y, *_ in polygon[0]])
            if _is_near(ring) and len(ring) > 3:
                yield ring


def _lines(collection: dict[str, Any]) -> Iterator[list[Point]]:
    for feature in collection["features"]:
        geometry = feature["geometry"]
        if geometry is None or feature["properties"]["scalerank"] > _RIVER_RANK:
            continue
        lines = geometry["coordinates"] if geometry["type"] == "MultiLineString" else [geometry["coordinates"]]
        for line in lines:
            points = _simplified([(x, y) for x, y, *_ in line])
            if _is_near(points):
                yield points


# --- lines


def _is_near(points: list[Point]) -> bool:
    xs, ys = [x for x, _ in points], [y for _, y in points]
    return max(xs) > WEST and min(xs) < EAST and max(ys) > SOUTH and min(ys) < NORTH


def _area(ring: list[Point]) -> float:
    pairs = zip(ring, [*ring[1:], ring[0]], strict=True)
    return abs(sum(xa * yb - xb * ya for (xa, ya), (xb, yb) in pairs)) / 2


def _simplified(line: list[Point]) -> list[Point]:
    """Douglas and Peucker's way, with a stack; both ends stay."""
    kept = {0, len(line) - 1}
    spans = [(0, len(line) - 1)]
    if len(line) > 3 and line[0] == line[-1]:
        # A ring's ends are one point, from which no distance is one: it is cut where it is farthest.
        far = max(range(len(line)), key=lambda at: hypot(line[at][0] - line[0][0], line[at][1] - line[0][1]))
        kept.add(far)
        spans = [(0, far), (far, len(line) - 1)]
    while spans:
        begin, end = spans.pop()
        if end - begin < 2:
            continue
        far = max(range(begin + 1, end), key=lambda at: _beside(line[at], line[begin], line[end]))
        if _beside(line[far], line[begin], line[end]) > _tolerance(line[far]):
            kept.add(far)
            spans += [(begin, far), (far, end)]
    return [line[at] for at in sorted(kept)]


def _tolerance(point: Point) -> float:
    x, y = point
    return _FINE if WEST <= x <= EAST and SOUTH <= y <= NORTH else _ROUGH


def _beside(point: Point, begin: Point, end: Point) -> float:
    """How far a point lies from a line between two others."""
    (x, y), (xa, ya), (xb, yb) = point, begin, end
    dx, dy = xb - xa, yb - ya
    length = dx * dx + dy * dy
    along = 0.0 if length == 0 else min(max(((x - xa) * dx + (y - ya) * dy) / length, 0.0), 1.0)
    return hypot(x - xa - along * dx, y - ya - along * dy)


def _packed(line: list[Point]) -> list[int]:
    """A line as its first point and the steps from there, in units."""
    packed: list[int] = []
    x = y = 0
    for lon, lat in line:
        there = round(lon / UNIT), round(lat / UNIT)
        if packed and there == (x, y):
            continue
        packed += [there[0] - x, there[1] - y]
        x, y = there
    return packed


if __name__ == "__main__":
    sys.exit(main())
