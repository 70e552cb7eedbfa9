"""The APIs whose messages we know: key, name, versions, and the first flexible version (KIP-482) of each."""

from typing import NamedTuple

from headrace.wire.api_table import API_TABLE


class Api(NamedTuple):
    """One API of the protocol; its versions are those we can read and write, not those a broker serves."""

    key: int
    name: str
    module: str
    """The module of its messages under `wire.messages`, and the name of the schema beside it."""
    version_first: int
    version_last: int
    flexible_first: int

    def knows(self, version: int) -> bool:
        """Whether the messages of this version can be read and written."""
        return self.version_first <= version <= self.version_last


APIS: dict[int, Api] = {row[0]: Api(*row) for row in API_TABLE}
