"""What makes a record good, in words that the data source understands.

Nearly all records are good, and the query for dead letters has no use for them. What a file requires is SQL; Spark
reads it, and what it would hand to a database as a filter is handed to our source. Where it would not hand everything,
all records go through Spark, which decides in the end anyway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.spark.conditions import AND, IS_NOT_NULL, IS_NULL, OR, Condition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_COMPARISONS = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_JOINS = {"And": AND, "Or": OR}
_TESTS = {"IsNull": IS_NULL, "IsNotNull": IS_NOT_NULL}
_US_PER_S, _MS_PER_S, _NS_PER_US = 1_000_000, 1000, 1000


class _Untold(Exception):
    """A filter the source does not know."""


def good_when(spark: SparkSession, schema: StructType, require: Sequence[str]) -> Condition | None:
    """When all that is required is fulfilled; None if that cannot be said."""
    # Rows that Spark does not know, so that it does not look at them already here.
    rows = spark.createDataFrame(spark.sparkContext.emptyRDD(), schema)
    for condition in require:
        rows = rows.where(condition)
    plan = rows._jdf.queryExecution().optimizedPlan()  # noqa: SLF001  pyspark shows plans as texts only.
    if plan.nodeName() != "Filter":
        return None
    jvm: Any = spark._jvm  # noqa: SLF001
    strategy = getattr(jvm.org.apache.spark.sql.execution.datasources, "DataSourceStrategy$")
    found = getattr(strategy, "MODULE$").translateFilter(plan.condition(), False)
    try:
        return _condition(found.get()) if found.isDefined() else None
    except _Untold:
        return None


def _condition(told: Any) -> Condition:
    """One of Spark's filters."""
    kind = told.getClass().getSimpleName()
    if kind in _JOINS:
        return [_JOINS[kind], _condition(told.left()), _condition(told.right())]
    if kind in _TESTS:
        return [_TESTS[kind], told.attribute()]
    if kind in _COMPARISONS:
        return [_COMPARISONS[kind], told.attribute(), _literal(told.value())]
    if kind == "In":
        return [OR, *(["=", told.attribute(), _literal(one)] for one in told.values())]
    raise _Untold(kind)


def _literal(value: Any) -> bool | float | str:
    """A value as JSON has it; moments in microseconds, as Spark counts them."""
    if isinstance(value, bool | int | float | str):
        return value
    if value is not None and value.getClass().getName() == "java.sql.Timestamp":
        return int(value.getTime() // _MS_PER_S * _US_PER_S + value.getNanos() // _NS_PER_US)
    raise _Untold(str(value))
