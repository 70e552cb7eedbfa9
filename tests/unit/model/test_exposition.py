"""The text that Prometheus reads."""

from headrace.model.exposition import PIECE_LINES, Family, Sample, counter, gauge, labelled, render
from prometheus_text import Metrics


def test_values_and_labels():
    """Do names, kinds, labels and numbers come out as they went in, even where a label has quotes in it?"""
    awkward = 'a "quoted"\\\n name'
    text = "".join(
        render(
            [
                counter("calls_total", "Calls.", 7),
                gauge("heat", "How warm it is.", 1.5),
                labelled("size", "gauge", "How large.", [({"topic": awkward}, 3), ({"topic": "b"}, 0)]),
            ]
        )
    )

    read = Metrics(text)
    assert (read.get("calls_total"), read.get("heat"), read.get("size", topic="b")) == (7, 1.5, 0)
    assert read.kinds == {"calls_total": "counter", "heat": "gauge", "size": "gauge"}
    assert '{topic="a \\"quoted\\"\\\\\\n name"} 3\n' in text


def test_nothing_to_tell():
    """Is a family that has no samples left out, its heading too?"""
    assert not "".join(render([Family("none", "gauge", "Nothing.", ())]))


def test_pieces():
    """Is a long family handed over in pieces that are whole lines?"""
    family = Family("many", "gauge", "Many.", (Sample({"n": str(n)}, n) for n in range(3 * PIECE_LINES)))

    pieces = list(render([family]))

    assert len(pieces) >= 3
    assert all(piece.endswith("\n") for piece in pieces)
    assert len(Metrics("".join(pieces)).values) == 3 * PIECE_LINES
