"""What --delete of the tools for groups says: which groups are gone, and why the others are not."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from headrace.cli.java_order import hash_order
from headrace.cli.java_words import exception
from headrace.cli.offset_reset import remedy
from headrace.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from headrace.cli.session import Session


def print_deletions(
    session: Session, codes: dict[str, int], kind: str, reasons: dict[str, str] | None = None, *, end: str = ""
) -> int:
    """Which groups are gone, and why the others are not; `reasons` are those that were not even tried."""
    report = session.report
    failed = {group_id: exception(code) for group_id, code in codes.items() if code} | (reasons or {})
    gone = ", ".join(f"'{group_id}'" for group_id in hash_order(codes) if group_id not in failed)
    if not failed:
        report.line(f"Deletion of requested {kind} groups ({gone}) was successful.")
    else:
        report.line(f"\nError: Deletion of some {kind} groups failed:")
        for group_id in hash_order(failed):
            report.line(f"* Group '{group_id}' could not be deleted due to: {failed[group_id]}")
        if gone:
            report.line(f"\nThese {kind} groups were deleted successfully: {gone}{end}")
        if advice := remedy(KafkaError(ErrorCode(next((code for code in codes.values() if code), 0)), "")):
            print(advice, file=sys.stderr)
    report.data(
        [
            {"group": group_id, "deleted": group_id not in failed, "error": failed.get(group_id)}
            for group_id in dict.fromkeys([*codes, *failed])
        ]
    )
    return int(bool(failed))
