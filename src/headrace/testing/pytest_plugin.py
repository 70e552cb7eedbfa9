"""The pytest fixtures that come with the package: `headrace_cluster`, fresh for each test, and one for the session.

pytest finds them by the package's entry point, in every project that has Headrace installed; so nothing of the broker
is imported before a test asks for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headrace.testing.cluster import Cluster


@pytest.fixture
def headrace_settings() -> Mapping[str, str]:
    """Broker settings for `headrace_cluster`; override it in a test module to have other ones."""
    return {}


@pytest.fixture
def headrace_brokers() -> int:
    """How many brokers `headrace_cluster` has; override it in a test module to have several."""
    return 1


@pytest.fixture
def headrace_cluster(headrace_settings: Mapping[str, str], headrace_brokers: int) -> Iterator[Cluster]:
    """A broker of the test's own, or as many as `headrace_brokers` says, gone when it ends."""
    from headrace.testing.cluster import Cluster  # noqa: PLC0415 - see above

    with Cluster(headrace_settings, brokers=headrace_brokers) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def headrace_session_cluster() -> Iterator[Cluster]:
    """One broker for the whole test session; use topics of your own."""
    from headrace.testing.cluster import Cluster  # noqa: PLC0415 - see above

    with Cluster() as cluster:
        yield cluster
