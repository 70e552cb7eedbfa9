"""The place a demo happens in."""

import socket

import pytest

from headrace.cli.demo_stage import clear_state, free_ports, make_stage, pipeline_name, set_stage, trucks_directory
from headrace.cli.setup_error import SetupError
from headrace.pipeline import runs
from headrace.pipeline.file import load_pipeline
from headrace.pipeline.runs import Run


@pytest.mark.parametrize(("fastest", "delay_ms"), [(1.0, 120_000), (20.0, 300_000), (100.0, 1_500_000)])
def test_pipeline_waits_longer_for_a_faster_clock(tmp_path, fastest, delay_ms):
    """Is the copied pipeline one that can be read, under its own name, with a watermark for the fleet's clock?"""
    set_stage(tmp_path, fastest=fastest, pipeline="fleet-7")
    pipeline = load_pipeline(tmp_path / "fleet.toml")

    assert ("fleet-7", delay_ms) == (pipeline.name, pipeline.sources["gps"].watermark.delay_ms)
    assert {path.name for path in trucks_directory().glob("*.py")} == {path.name for path in tmp_path.glob("*.py")}


def test_named_directory_must_be_empty(tmp_path):
    """Is a directory with something in it refused rather than mixed with a demo?"""
    assert tmp_path / "new" == make_stage(str(tmp_path / "new"))

    with pytest.raises(SetupError, match="is not empty"):
        make_stage(str(tmp_path))


def test_ports_are_free():
    """Can both ports that were found for each broker be listened on, and are they all different?"""
    ports = [number for port in free_ports(3) for number in (port, port + 1)]

    assert len(set(ports)) == 6
    for number in ports:
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", number))


@pytest.mark.parametrize("is_kept", [False, True])
def test_nothing_of_the_pipeline_stays(tmp_path, monkeypatch, is_kept):
    """Is the demo's pipeline forgotten at its end, its log kept where all is, and a person's own fleet as it was?"""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    own = Run(name="fleet", file="my.toml", brokers="b", state=runs.STOPPED, queries=[])
    runs.save_run(own)
    name = pipeline_name(7)
    runs.save_run(Run(name=name, file="fleet.toml", brokers="b", state=runs.STOPPED))
    runs.log_file(name).write_text("what Spark said")
    clear_state(name, keep=tmp_path if is_kept else None)

    assert [own] == runs.known_runs()
    assert ["fleet.json"] == [path.name for path in runs.state_directory().iterdir()]
    assert is_kept == (tmp_path / "spark.log").exists()
