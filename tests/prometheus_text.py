"""A strict reader of Prometheus' text format, for tests: what a real scraper would refuse, it refuses."""

import re

_SAMPLE = re.compile(r'([a-z_][a-z0-9_]*)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (-?[0-9.e+-]+|\+Inf|NaN)\Z')
_LABEL = re.compile(r'([a-z_]+)="((?:[^"\\\n]|\\[\\"n])*)"')
_PARTS = ("_bucket", "_sum", "_count")


class Metrics:
    """What was exported: values by name and labels, kinds by name."""

    def __init__(self, text: str) -> None:
        self.kinds: dict[str, str] = {}
        self.values: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        assert text.endswith("\n")
        for line in text.splitlines():
            self._read(line)
        for name, kind in self.kinds.items():
            assert kind != "counter" or name.endswith("_total"), name
            if kind == "histogram":
                self._check_histogram(name)

    def _read(self, line: str) -> None:
        if line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4, line
        elif line.startswith("# TYPE "):
            name, kind = line.split(" ")[2:]
            assert name not in self.kinds, f"{name} is there twice"
            self.kinds[name] = kind
        else:
            match = _SAMPLE.match(line)
            assert match, line
            name, labels = match[1], frozenset(_LABEL.findall(match[2] or ""))
            assert self.family(name) in self.kinds, f"{name} has no type"
            assert (name, labels) not in self.values, line
            self.values[name, labels] = float(match[3])

    def family(self, name: str) -> str:
        """The family a sample belongs to."""
        for part in _PARTS:
            if name.endswith(part) and self.kinds.get(name.removesuffix(part)) == "histogram":
                return name.removesuffix(part)
        return name

    def _check_histogram(self, name: str) -> None:
        for (sample, labels), count in self.values.items():
            if sample != f"{name}_count":
                continue
            buckets = [
                (float(dict(found)["le"]), value)
                for (one, found), value in self.values.items()
                if one == f"{name}_bucket" and labels < found
            ]
            values = [value for _, value in sorted(buckets)]
            assert values == sorted(values), (name, labels)
            assert values[-1] == count

    def get(self, name: str, **labels: str) -> float | None:
        """One value."""
        return self.values.get((name, frozenset(labels.items())))

    def names(self) -> set[str]:
        """Every name of a sample."""
        return {name for name, _ in self.values}
