"""What a demo says."""

from pathlib import Path

from headrace.cli.demo_run import footer


def test_the_way_out_is_never_cut():
    """Does a narrow terminal still show what ends the demo, and where its map is?"""
    place = Path("/a/temporary/directory/with/a/long/name/headrace-demo-abcdefgh")
    line = footer("http://localhost:54321/console/fleet", "localhost:41001,localhost:41011,localhost:41021", place)

    assert line[:80].startswith("Ctrl-C ends everything   map http://localhost:54321/console/fleet   ")
    assert line.endswith(f"data {place}")
    assert "map" not in footer("", "localhost:41001", place)
