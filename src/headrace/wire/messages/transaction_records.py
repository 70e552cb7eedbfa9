"""The transaction records' classes live in `model`, where the cores that decide them can see them."""

from headrace.model.transaction_records import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)

__all__ = (
    "PartitionsSchema",
    "TransactionLogKey",
    "TransactionLogValue",
)
