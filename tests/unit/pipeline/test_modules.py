"""The Python functions of a pipeline are looked for without running anything of theirs."""

import pytest

from headrace.pipeline.fault import FileFault
from headrace.pipeline.file import load_pipeline
from headrace.pipeline.modules import check_modules

TEXT = """\
[pipeline]
name = "copy"
[pipeline.spark]
"spark.ui.enabled" = false
[source.lines]
topic = "lines"
format = "string"
[transform.loud]
python = "MODULE:shout"
inputs = "lines"
[sink.out]
from = "loud"
topic = "out"
"""
EXPLODING = "raise AssertionError('this was run')\n"


@pytest.fixture
def check(tmp_path):
    """Checks a file that names a module."""

    def run(module, text=TEXT):
        path = tmp_path / "copy.toml"
        path.write_text(text.replace("MODULE", module))
        check_modules(load_pipeline(path))

    return run


@pytest.mark.parametrize("module", ["nomod", "nopackage.nomod", "json.nomod", "sys.nomod"])
def test_a_module_nobody_has(check, tmp_path, module):
    """Is a module that is nowhere a sentence with its line?"""
    with pytest.raises(FileFault) as caught:
        check(module)

    sentence = f"There is no module '{module}' in {tmp_path}. Write it, or mend the name."
    assert str(caught.value) == f"{tmp_path}/copy.toml:9: {sentence}"


@pytest.mark.parametrize("module", ["beside", "package.inner", "plain.inner", "package", "elsewhere", "distant.inner"])
def test_modules_are_found_but_not_run(check, tmp_path, monkeypatch, module):
    """Is a module or package beside the file, or anywhere an import finds it, right, though running it would fail?"""
    other = tmp_path / "other"
    monkeypatch.syspath_prepend(str(other))
    for path in ("beside.py", "package/__init__.py", "package/inner.py", "plain/inner.py", "other/elsewhere.py",
                 "other/distant/__init__.py", "other/distant/inner.py"):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{EXPLODING}def shout(): ...\n")

    check(module)


def test_what_spark_is_given(check):
    """Is a module not missed where Spark brings files of its own along?"""
    check("nomod", TEXT.replace('"spark.ui.enabled" = false', '"spark.submit.pyFiles" = "code.zip"'))
