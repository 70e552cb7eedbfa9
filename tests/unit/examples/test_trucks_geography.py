"""Distances, great circles and fences of the truck fleet."""

from itertools import pairwise

import pytest
from geography import (
    ON_CORRIDORS,
    bearing,
    beside,
    corridor_way,
    distance_km,
    fences_around,
    fences_at,
    great_circle,
    region_cells,
)
from hypothesis import given
from hypothesis import strategies as st
from places import CORRIDORS, HUBS, PLACES


def point(name):
    return PLACES[name][2:]


@pytest.mark.parametrize(("here", "there", "km"), [("Berlin", "Paris", 878), ("Hamburg", "München", 612)])
def test_distances_are_those_of_the_atlas(here, there, km):
    """Are two cities as far apart as they really are?"""
    assert km == pytest.approx(distance_km(point(here), point(there)), abs=5)


def test_great_circle_adds_up():
    """Do the pieces of a great circle begin and end at its ends, and are they together no longer than it?"""
    here, there = point("Madrid"), point("Warszawa")
    way = great_circle(here, there)

    assert (here, there) == (way[0], way[-1])
    assert distance_km(here, there) == pytest.approx(sum(distance_km(a, b) for a, b in pairwise(way)), rel=1e-6)
    assert [here] == great_circle(here, here)


@pytest.mark.parametrize(("direction", "there"), [(0, (51.0, 10.0)), (90, (50.0, 11.556)), (180, (49.0, 10.0))])
def test_directions(direction, there):
    """Does north lead north, and is a bearing the direction that was taken?"""
    reached = beside((50.0, 10.0), direction, 111.2)

    assert there == pytest.approx(reached, abs=0.01)
    assert direction == pytest.approx(bearing((50.0, 10.0), reached), abs=1)


@pytest.mark.parametrize("corridor", CORRIDORS)
def test_corridors_lie_within_their_fence(corridor):
    """Is every point of a corridor inside the fence along the corridors, and are its places where they are?"""
    way, stops = corridor_way(corridor)

    assert all(ON_CORRIDORS in fences_around(*here) for here in way)
    assert [point(name) for name in CORRIDORS[corridor]] == [way[stop] for stop in stops]


def test_fences():
    """Does a hub's yard surround the hub and nothing far away?"""
    assert {"Berlin", ON_CORRIDORS} == fences_around(*point("Berlin"))
    assert frozenset() == fences_around(60.0, 5.0)
    for name in HUBS:
        assert name in fences_around(*beside(point(name), 45, 11.5))
        assert name not in fences_around(*beside(point(name), 45, 12.5))


@given(st.floats(45, 56), st.floats(2, 20))
def test_names_of_fences_are_those_around(lat, lon):
    """Are the names of a point's fences, which are looked up by its cell, the fences around it?"""
    assert fences_at(lat, lon) == ",".join(sorted(fences_around(lat, lon)))


def test_regions_follow_the_nearest_place():
    """Is a place in its own country by the table of regions?"""
    table = {(north, east): region for north, east, region in region_cells()}

    found = {name: table[int(place.lat // 0.5), int(place.lon // 0.5)] for name, place in PLACES.items()}

    assert {name: PLACES[name].region for name in ("Berlin", "Madrid", "Roma", "Warszawa")} == {
        name: found[name] for name in ("Berlin", "Madrid", "Roma", "Warszawa")
    }
    assert sum(PLACES[name].region == region for name, region in found.items()) > 0.9 * len(PLACES)
