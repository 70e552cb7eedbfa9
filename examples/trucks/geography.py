"""Distances, great circles, and where on the ground a point lies. Pure arithmetic."""

from functools import cache
from itertools import pairwise
from math import asin, atan2, ceil, cos, degrees, floor, radians, sin, sqrt

from places import CORRIDORS, HUBS, PLACES

EARTH_KM = 6371.0
Point = tuple[float, float]
"""Latitude and longitude in degrees."""

_STEP_KM = 25.0
"""A great circle is drawn as straight pieces of about this length: the error in between is metres."""
CELL_DEGREES = 0.1
"""Corridors are known by the cells they cross: about 11 km high and 6 to 8 km wide in these latitudes."""
_BESIDE_CELLS = 1
"""How many cells beside the line still count as on it."""
_REGION_DEGREES = 0.5
_NORTH, _SOUTH, _WEST, _EAST = 60, 36, -10, 30

HUB_KM = 12.0
ON_CORRIDORS = "corridors"
"""The fence around all corridors: who leaves it is where no road of the fleet goes."""


def distance_km(here: Point, there: Point) -> float:
    """The length of the great circle between two points."""
    lat_a, lon_a, lat_b, lon_b = map(radians, (*here, *there))
    square = sin((lat_b - lat_a) / 2) ** 2 + cos(lat_a) * cos(lat_b) * sin((lon_b - lon_a) / 2) ** 2
    return 2 * EARTH_KM * asin(sqrt(square))


def bearing(here: Point, there: Point) -> float:
    """The compass direction in which the great circle leaves the first point, in degrees."""
    lat_a, lon_a, lat_b, lon_b = map(radians, (*here, *there))
    east = sin(lon_b - lon_a) * cos(lat_b)
    north = cos(lat_a) * sin(lat_b) - sin(lat_a) * cos(lat_b) * cos(lon_b - lon_a)
    return degrees(atan2(east, north)) % 360


def beside(here: Point, direction: float, far_km: float) -> Point:
    """The point so many kilometres away in a compass direction; flat arithmetic, for tens of kilometres."""
    north = far_km * cos(radians(direction)) / EARTH_KM
    east = far_km * sin(radians(direction)) / (EARTH_KM * cos(radians(here[0])))
    return here[0] + degrees(north), here[1] + degrees(east)


def great_circle(here: Point, there: Point) -> list[Point]:
    """The way from one point to another, as points about `_STEP_KM` apart; both ends belong to it."""
    angle = distance_km(here, there) / EARTH_KM
    if angle == 0:
        return [here]
    pieces = ceil(angle * EARTH_KM / _STEP_KM)
    start, end = _vector(here), _vector(there)
    way = []
    for piece in range(pieces + 1):
        share = piece / pieces
        near, far = sin((1 - share) * angle) / sin(angle), sin(share * angle) / sin(angle)
        x, y, z = (near * a + far * b for a, b in zip(start, end, strict=True))
        way.append((degrees(atan2(z, sqrt(x * x + y * y))), degrees(atan2(y, x))))
    return [here, *way[1:-1], there]


def _vector(point: Point) -> tuple[float, float, float]:
    lat, lon = map(radians, point)
    return cos(lat) * cos(lon), cos(lat) * sin(lon), sin(lat)


@cache
def corridor_way(corridor: str) -> tuple[list[Point], list[int]]:
    """A corridor's points from end to end, and which of them are its places."""
    way: list[Point] = [PLACES[CORRIDORS[corridor][0]][2:]]
    stops = [0]
    for here, there in pairwise(CORRIDORS[corridor]):
        way += great_circle(PLACES[here][2:], PLACES[there][2:])[1:]
        stops.append(len(way) - 1)
    return way, stops


def _cell(lat: float, lon: float) -> tuple[int, int]:
    return floor(lat / CELL_DEGREES), floor(lon / CELL_DEGREES)


@cache
def corridor_cells() -> frozenset[tuple[int, int]]:
    """The cells that corridors cross, and those beside them."""
    cells = set()
    around = range(-_BESIDE_CELLS, _BESIDE_CELLS + 1)
    for corridor in CORRIDORS:
        way, _ = corridor_way(corridor)
        for (lat_a, lon_a), (lat_b, lon_b) in pairwise(way):
            for step in range(10):
                north, east = _cell(lat_a + (lat_b - lat_a) * step / 10, lon_a + (lon_b - lon_a) * step / 10)
                cells |= {(north + up, east + right) for up in around for right in around}
    return frozenset(cells)


@cache
def _hubs_by_cell() -> dict[tuple[int, int], list[str]]:
    """Which hubs may be near, by cell, so that a report is compared with none or one of them."""
    found: dict[tuple[int, int], list[str]] = {}
    for name in HUBS:
        north, east = _cell(*PLACES[name][2:])
        for up in range(-2, 3):
            for right in range(-3, 4):
                found.setdefault((north + up, east + right), []).append(name)
    return found


def fences_around(lat: float, lon: float) -> frozenset[str]:
    """The geofences a point lies in: the yards of hubs, and the strip along the corridors."""
    cell = _cell(lat, lon)
    inside = [name for name in _hubs_by_cell().get(cell, ()) if distance_km((lat, lon), PLACES[name][2:]) <= HUB_KM]
    if cell in corridor_cells():
        inside.append(ON_CORRIDORS)
    return frozenset(inside)


@cache
def fences_of_cell(cell: tuple[int, int]) -> tuple[tuple[str, ...], str]:
    """The hubs that may be near a cell, and in which fences a point of it lies that is in no hub's yard."""
    return tuple(_hubs_by_cell().get(cell, ())), ON_CORRIDORS if cell in corridor_cells() else ""


def fences_at(lat: float, lon: float) -> str:
    """The names of the geofences a point lies in, in order, separated by commas."""
    hubs, others = fences_of_cell(_cell(lat, lon))
    return ",".join(sorted(fences_around(lat, lon))) if hubs else others


def region_cells() -> list[tuple[int, int, str]]:
    """A table of regions: every cell of half a degree with the country of the place nearest to its middle."""
    per_degree = round(1 / _REGION_DEGREES)
    cells = []
    for north in range(_SOUTH * per_degree, _NORTH * per_degree):
        for east in range(_WEST * per_degree, _EAST * per_degree):
            middle = ((north + 0.5) / per_degree, (east + 0.5) / per_degree)
            nearest = min(PLACES.values(), key=lambda place: distance_km(middle, place[2:]))
            cells.append((north, east, nearest.region))
    return cells
