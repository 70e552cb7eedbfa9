"""librdkafka's own numbers, printed at the end of a performance test where Kafka prints its client's metrics."""

from __future__ import annotations

import json
from typing import Any

STATISTICS_MS = 1000


class Metrics:
    """The last statistics librdkafka gave."""

    def __init__(self) -> None:
        self._last: dict[str, Any] = {}

    def __call__(self, text: str) -> None:
        """Take statistics, as the callback gives them."""
        self._last = json.loads(text)

    def lines(self) -> list[str]:
        """Name and value, as Kafka's tools print metrics."""
        rows = sorted((name, value) for name, value in self._last.items() if isinstance(value, int | float))
        rows += sorted(
            (f"{broker['name']}:{name}", value)
            for broker in self._last.get("brokers", {}).values()
            for name, value in broker.items()
            if isinstance(value, int | float)
        )
        width = max((len(name) for name, _ in rows), default=0)
        return ["", f"{'Metric Name':<{width}} Value", *(f"{name:<{width}} : {value:.3f}" for name, value in rows)]
