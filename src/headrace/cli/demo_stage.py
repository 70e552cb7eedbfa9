"""The place a demo happens in: a directory of its own with a copy of the fleet's programs, and ports nobody uses."""

from __future__ import annotations

import shutil
import socket
import tempfile
from pathlib import Path

from headrace.cli.layout import project_root
from headrace.cli.setup_error import SetupError

PIPELINE = "fleet"
_DELAY = 'delay = "2 minutes"'
_NAME = f'name = "{PIPELINE}"'
_DELAY_SECONDS_MIN = 120
_SKEW_S = 15
"""How far the partitions may drift apart in our time, while a broker is started again for one; the fleet's time runs
faster, and what is later than the pipeline's watermark would count as lost."""
_LIMIT = 65_534
_APART = 2
_ATTEMPTS_PER_BROKER = 100


def trucks_directory() -> Path:
    """The fleet's programs: in the project directory, or inside the installed package."""
    root = project_root()
    place = (root or Path(__file__).resolve().parents[1]) / "examples" / "trucks"
    if not (place / "fleet.toml").is_file():
        raise SetupError(f"The fleet's programs are not in {place}.", "Install the package again, or use a checkout.")
    return place


def make_stage(directory: str | None) -> Path:
    """The demo's directory: a new temporary one, or the one that was named, which must be empty."""
    if directory is None:
        return Path(tempfile.mkdtemp(prefix="headrace-demo-"))
    place = Path(directory).absolute()
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise SetupError(f"{directory} is not empty.", "Name another directory, or leave --data out.")
    return place


def set_stage(place: Path, *, fastest: float, pipeline: str) -> None:
    """Copy the fleet's programs, with the pipeline made fit for a clock that runs so much faster than ours."""
    for path in trucks_directory().iterdir():
        if path.suffix in {".py", ".toml"}:
            shutil.copy(path, place / path.name)
    file = place / "fleet.toml"
    text = file.read_text(encoding="utf-8")
    assert text.count(_DELAY) == 1, "the pipeline's file has the delay we change"
    assert text.count(_NAME) == 1, "and the name"
    delay_s = max(_DELAY_SECONDS_MIN, round(_SKEW_S * fastest))
    text = text.replace(_DELAY, f'delay = "{delay_s} seconds"').replace(_NAME, f'name = "{pipeline}"')
    file.write_text(text, encoding="utf-8")


def pipeline_name(pid: int) -> str:
    """A name no other pipeline of this machine has: a person may have one of the fleet's name too."""
    return f"{PIPELINE}-demo-{pid}"


def clear_state(pipeline: str, keep: Path | None) -> None:
    """Remove what the pipeline left in the state directory; Spark's log goes along with what is kept."""
    from headrace.pipeline.runs import forget_run, log_file

    if keep is not None and log_file(pipeline).exists():
        shutil.copy(log_file(pipeline), keep / "spark.log")
    forget_run(pipeline)


def free_ports(brokers: int = 1) -> list[int]:
    """A free port for each broker, of which the next one is free too: for clients and for the controller."""
    ports: list[int] = []
    for _ in range(_ATTEMPTS_PER_BROKER * brokers):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port: int = first.getsockname()[1]
            if port > _LIMIT or any(abs(port - other) < _APART for other in ports):
                continue
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            ports.append(port)
            if len(ports) == brokers:
                return ports
    raise SetupError("No two neighbouring ports are free.", "End some programs and try again.")
