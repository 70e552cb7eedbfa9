"""Records on standard output, many at a time, and what happens when nobody reads them any more."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Self

from headrace.model.errors import HeadraceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.record_format import Format, Shown


class Printer:
    """Prints records and counts them."""

    def __init__(self, show: Format, *, skips: bool) -> None:
        self._show = show
        self._skips = skips
        self._out: Any = getattr(sys.stdout, "buffer", None)
        self.count = 0
        self.is_heard = True
        """Whether somebody still reads what we print."""

    def __enter__(self) -> Self:
        sys.stdout.flush()
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_heard:
            sys.stdout.flush()

    def print(self, records: Sequence[Shown]) -> None:
        """Print records at once; they are out when this returns."""
        try:
            text = b"".join(map(self._show, records))
            self.count += len(records)
        except HeadraceError:
            # One of them cannot be printed; now it matters which.
            for record in records:
                self._print_one(record)
            return
        self._write(text)

    def _print_one(self, record: Shown) -> None:
        self.count += 1
        try:
            text = self._show(record)
        except HeadraceError as error:
            if not self._skips:
                raise
            print(f"Error processing message, skipping this message: {error}", file=sys.stderr)
            return
        self._write(text)

    def _write(self, text: bytes) -> None:
        if not self.is_heard:
            return
        try:
            if self._out is None:
                sys.stdout.write(text.decode(errors="replace"))
            else:
                self._out.write(text)
            sys.stdout.flush()
        except BrokenPipeError:
            self.is_heard = False
            print("Unable to write to standard out, closing consumer.", file=sys.stderr)
            # Python flushes what is left when it ends; let it go nowhere.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
