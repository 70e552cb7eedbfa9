"""Conditions on columns that the source judges itself, so that rows nobody wants need not go to Spark.

A condition is a list: `["and", ...]` and `["or", ...]` of conditions, `["is null", column]`, `["is not null", column]`,
and a comparison, `["<=", column, literal]`. There is no negation: where a value is null or no number, a comparison does
not hold, and so nothing holds here that does not hold in Spark as well.
"""

import json
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Condition: TypeAlias = list[Any]

AND, OR, IS_NULL, IS_NOT_NULL = "and", "or", "is null", "is not null"
_COMPARISONS: dict[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "=": pc.equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_TESTS: dict[str, Callable[[pa.Array], pa.Array]] = {IS_NULL: pc.is_null, IS_NOT_NULL: pc.is_valid}
_JOINS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {AND: pc.and_, OR: pc.or_}


def write_condition(condition: Condition) -> str:
    """A condition as the text of an option."""
    return json.dumps(condition)


def read_condition(text: str) -> Condition:
    """The other way."""
    found: Condition = json.loads(text)
    return found


def without(batch: pa.RecordBatch, condition: Condition) -> pa.RecordBatch:
    """The rows of which a condition does not hold."""
    return batch.filter(pc.invert(_holds(condition, batch)))


def _holds(condition: Condition, batch: pa.RecordBatch) -> pa.Array:
    """Of which rows it holds; never null."""
    what, *rest = condition
    if what in _JOINS:
        return reduce(_JOINS[what], (_holds(one, batch) for one in rest))
    column = batch.column(rest[0])
    if what in _TESTS:
        return _TESTS[what](column)
    return pc.fill_null(_COMPARISONS[what](column, pa.scalar(rest[1], column.type)), fill_value=False)
