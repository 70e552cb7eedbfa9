"""`headrace demo`: a truck fleet from end to end, with everything it needs, and its account at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.cli.session import run_tool
from headrace.cli.tool import Option, Tool, UsageError, Values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.cli.session import Session

TOOL = Tool(
    name="headrace demo",
    summary="Run a truck fleet end to end: a broker, trucks that report, a Spark pipeline, a dashboard and a map, a "
    "notifier.",
    options=(
        Option(name="trucks", short="t", argument="number", default="200", help="How many trucks drive."),
        Option(name="speedup", short="s", argument="factor", default="20", help="How much faster their clock runs."),
        Option(name="duration", short="d", argument="seconds", help="When to stop; otherwise at Ctrl-C."),
        Option(name="headless", help="No dashboard, only lines."),
        Option(name="brokers", argument="number", default="1", help="How many brokers the cluster has."),
        Option(name="burst", argument="records/s", help="From the 20th second on, send so fast for a while."),
        Option(name="burst-for", argument="seconds", default="60", help="How long that lasts."),
        Option(name="seed", argument="number", default="1", help="Another seed, another fleet."),
        Option(name="data", argument="directory", help="Where to keep everything; otherwise it is removed at the end."),
    ),
    examples=(
        ("Two hundred trucks, until Ctrl-C", ""),
        ("Three brokers, one of which may be killed at any time", "--brokers 3"),
        ("Ten thousand trucks in real time, for five minutes", "--trucks 10000 --speedup 1 --duration 300"),
    ),
)


def main(arguments: Sequence[str], program: str) -> int:
    """Run the command."""
    return run_tool(TOOL, arguments, program, _demo, check=_check, is_own=True)


def _check(values: Values) -> None:
    if values.words:
        raise UsageError(f"'{values.words[0]}' is not understood here")
    for name in ("trucks", "brokers"):
        if (values.number(name) or 0) < 1:
            raise UsageError(f"The number of {name} is at least 1")
    for name in ("speedup", "duration", "burst", "burst-for"):
        if values.get(name) is not None and _positive(values, name) is None:
            raise UsageError(f"{name} is a number above 0")
    values.number("seed")


def _positive(values: Values, name: str) -> float | None:
    """The value of an option as a positive number."""
    try:
        number = float(values.get(name) or 0)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


async def _demo(session: Session) -> int:
    values = session.values
    from headrace.cli.demo_java import ensure_java
    from headrace.cli.extras import ensure_extra

    ensure_extra("client", "gateway", "spark")
    ensure_java()
    from headrace.cli.demo_run import DemoPlan, run_demo

    plan = DemoPlan(
        trucks=values.number("trucks") or 0,
        speedup=_positive(values, "speedup") or 1.0,
        duration_s=_positive(values, "duration"),
        burst=_positive(values, "burst"),
        burst_s=_positive(values, "burst-for") or 0.0,
        seed=values.number("seed") or 0,
        is_headless=values.has("headless") or not session.report.is_text,
        data=values.get("data"),
        brokers=values.number("brokers") or 1,
    )
    return run_demo(plan, session.report)
