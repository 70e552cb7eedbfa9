"""Are checkpoint files replaced in one step, and bad ones recognised?"""

import errno

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.storage.checkpoint_file import decode_entries, encode_entries, parse_number, replace_file


def test_replacing_is_durable(memory):
    """Is the new content there after a power cut right behind the replacement?"""
    replace_file(memory, "/data/c", b"old")
    replace_file(memory, "/data/c", b"new")
    memory.power_cut()

    assert memory.read("/data/c") == b"new"
    assert memory.listdir("/data") == ["c"]


@pytest.mark.parametrize("operation", ["create", "write", "fsync", "rename"])
def test_a_failed_replacement_leaves_the_old(memory, operation):
    """Is the old content untouched, and nothing left beside it, whatever step fails?"""
    replace_file(memory, "/data/c", b"old")
    memory.fail_next(operation, errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        replace_file(memory, "/data/c", b"new")

    assert memory.read("/data/c") == b"old"
    assert memory.listdir("/data") == ["c"]


def test_replacing_a_real_file(tmp_path, disk):
    """Does the same work on a real disk?"""
    replace_file(disk.files, f"{disk.root}/c", b"one")
    replace_file(disk.files, f"{disk.root}/c", b"two")

    assert disk.files.read(f"{disk.root}/c") == b"two"


def test_the_form():
    """Is the file a version, a count and the entries, a line each?"""
    assert encode_entries(["a 0 5", "b 1 6"]) == b"0\n2\na 0 5\nb 1 6\n"
    assert decode_entries(b"0\n2\na 0 5\nb 1 6\n") == [["a", "0", "5"], ["b", "1", "6"]]
    assert decode_entries(b"0\n0\n") == []


@pytest.mark.parametrize("data", [b"", b"0\n", b"1\n0\n", b"0\n2\na 0 5\n", b"0\nx\n", b"\xff\xfe", b"0\n1\na\nb\n"])
def test_bad_files(data):
    """Is a file that is cut, of another version or no text refused?"""
    assert decode_entries(data) is None


@given(st.binary(max_size=60))
def test_any_bytes(data):
    """Does decoding never raise?"""
    decode_entries(data)


@pytest.mark.parametrize("text", ["-1", "", "1e3", "٣", "9223372036854775808", "1" * 5000])
def test_numbers_out_of_bounds(text):
    """Are numbers that are none, or too great, refused?"""
    with pytest.raises(ValueError, match="is not a number"):
        parse_number(text)


def test_numbers():
    """Are numbers of the given width accepted?"""
    assert parse_number("9223372036854775807") == 2**63 - 1
    with pytest.raises(ValueError, match="is not a number"):
        parse_number("2147483648", bits=32)
