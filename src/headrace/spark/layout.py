"""Where the fields of typed values go: columns of their own, inside a `value` column of type STRUCT, or both."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from headrace.client.fault import BadOption
from headrace.spark.columns import Cells
from headrace.spark.row_schema import is_value_struct, value_fields

ERROR_COLUMN = "_error"


class Layout:
    """What a query's schema asks of each value, and how its columns are put together."""

    __slots__ = ("_corrupt_column", "_nested", "_top", "fields", "wants_faults")

    def __init__(self, schema: pa.Schema, corrupt_column: str) -> None:
        self._corrupt_column = corrupt_column
        self._top = value_fields(schema)
        self._nested = [field for field in schema if is_value_struct(field)]
        self.fields: dict[str, pa.DataType] = {}
        """The fields to read from each value, with their types."""
        self.wants_faults = False
        for field in self._all():
            self._check(field)
            if field.name in (corrupt_column, ERROR_COLUMN):
                self.wants_faults = True
            else:
                self.fields[field.name] = field.type

    def columns(self, values: Cells, arrays: Mapping[str, pa.Array], faults: Mapping[int, str]) -> dict[str, pa.Array]:
        """The columns of the schema, from the arrays of the fields and the reasons why rows could not be read."""
        arrays = {**arrays, **self._fault_columns(values, faults)}
        columns = {field.name: arrays[field.name] for field in self._top}
        for field in self._nested:
            columns[field.name] = _nest(field.type, arrays, values)
        return columns

    def _all(self) -> Iterator[pa.Field]:
        yield from self._top
        for field in self._nested:
            yield from field.type

    def _check(self, field: pa.Field) -> None:
        """BadOption for a field that contradicts another or itself."""
        if not field.nullable:
            raise BadOption(
                f"The field {field.name} of the value is declared NOT NULL",
                "A value that cannot be read gives nulls; leave NOT NULL out.",
            )
        if field.name in (self._corrupt_column, ERROR_COLUMN) and field.type != pa.string():
            raise BadOption(f"The column {field.name} is declared as {field.type}", "It is of type STRING.")
        if self.fields.get(field.name, field.type) != field.type:
            raise BadOption(f"The field {field.name} of the value is declared with two types", "Give it one name each.")

    def _fault_columns(self, values: Cells, faults: Mapping[int, str]) -> dict[str, pa.Array]:
        """The text of what could not be read, and the reason; all null in most batches."""
        if not self.wants_faults:
            return {}
        reasons: list[str | None] = [None] * values.row_count
        texts: list[str | None] = [None] * values.row_count
        for row, reason in faults.items():
            reasons[row] = reason
            texts[row] = (values.cell(row) or b"").decode("utf-8", "replace")
        return {ERROR_COLUMN: pa.array(reasons, pa.string()), self._corrupt_column: pa.array(texts, pa.string())}


def _nest(data_type: pa.DataType, arrays: Mapping[str, pa.Array], values: Cells) -> pa.Array:
    """The fields as one column; a null value is null itself, a bad one has nothing but nulls inside."""
    mask = None
    if values.validity is not None:
        valid = np.unpackbits(values.validity, count=values.row_count, bitorder="little")
        mask = pa.array(valid == 0)
    return pa.StructArray.from_arrays([arrays[part.name] for part in data_type], fields=list(data_type), mask=mask)
