"""Write the map's places, corridors and geofences from the truck example; a test regenerates and compares.

Run as: PYTHONPATH=examples/trucks python tools/generate_fleet_places.py
"""

import json
from pathlib import Path

from alert_rules import KINDS, Limits
from fleet import EVERY_MS
from geography import HUB_KM, corridor_way
from places import CORRIDORS, HUBS, PLACES

TARGET = Path(__file__).parent.parent / "src" / "headrace" / "console" / "assets" / "fleet" / "places.json"


def render() -> str:
    """The whole file."""
    document = {
        "places": [
            {"name": place.name, "lat": place.lat, "lon": place.lon, "hub": place.name in HUBS}
            for place in PLACES.values()
        ],
        "corridors": [
            {"name": name, "way": [[round(lat, 3), round(lon, 3)] for lat, lon in corridor_way(name)[0]]}
            for name in CORRIDORS
        ],
        "hub_km": HUB_KM,
        "every_ms": EVERY_MS,
        "limit_kmh": Limits().speed_kmh,
        "silent_ms": Limits().silent_ms,
        "kinds": list(KINDS),
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n"


if __name__ == "__main__":
    TARGET.write_text(render())
