"""A real broker inside a test: `Cluster` starts one on a free port in well under a second and leaves no trace."""

from headrace.testing.cluster import Cluster

__all__ = ("Cluster",)
