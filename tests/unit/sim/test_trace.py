"""What is kept of a run."""

from headrace.sim.trace import KEPT, Trace


def test_fingerprint_tells_runs_apart():
    """Is the fingerprint that of all lines and their times, not of the last only?"""
    runs = []
    for first_ms in (1, 1, 2):
        trace = Trace()
        trace.add(first_ms, "begins")
        for number in range(KEPT):
            trace.add(10, f"line {number}")
        runs.append(trace)
    assert runs[0].fingerprint == runs[1].fingerprint != runs[2].fingerprint
    assert "begins" not in str(runs[0])
    assert f"line {KEPT - 1}" in str(runs[0])
