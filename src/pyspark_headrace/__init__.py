"""Spark looks for data sources in modules of such a name: `format("headrace")` works once this is installed."""

from headrace.spark.source import HeadraceSource as DefaultSource

__all__ = ["DefaultSource"]
