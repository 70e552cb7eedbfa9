"""`pip install .`: the package as others get it, without the project directory around it."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command away from the project, so that nothing in it is found by accident."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=clean, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """An environment with the built package, and the dependencies of the one we run in."""
    place = tmp_path_factory.mktemp("package")
    built = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place, cwd=ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = place.glob("headrace-*.whl")
    environment = place / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment, cwd=place)
    bin_directory = environment / ("Scripts" if sys.platform == "win32" else "bin")
    (environment / "wheel.txt").write_text("\n".join(zipfile.ZipFile(wheel).namelist()))
    pip = [sys.executable, "-m", "pip", "--python", bin_directory / "python"]
    done = run(*pip, "install", "--quiet", "--no-index", "--no-deps", wheel, cwd=place)
    assert done.returncode == 0, done.stderr
    packages = sysconfig.get_path("purelib", "venv", vars={"base": str(environment), "platbase": str(environment)})
    Path(packages, "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return bin_directory


def test_commands_are_there(installed, tmp_path):
    """Do the installed commands answer, the umbrella and Kafka's names alike?"""
    assert run(installed / "headrace", "version", cwd=tmp_path).stdout.startswith("Headrace ")
    assert len(run(installed / "kafka-storage", "random-uuid", cwd=tmp_path).stdout) == 23
    usage = run(installed / "kafka-server-start", cwd=tmp_path)
    assert (usage.returncode, usage.stdout) == (
        1,
        f"USAGE: {installed / 'kafka-server-start'} [-daemon] server.properties [--override property=value]*\n",
    )


def test_package_stands_alone(installed, tmp_path):
    """Is the code run from the package and not from the project, with its sample configuration and message tables?"""
    script = (
        "import headrace, headrace.cli.layout as layout, headrace.wire.codec as codec\n"
        "print(headrace.__file__, layout.project_root(), layout.sample_config('server.properties').is_file())\n"
    )
    done = run(installed / "python", "-c", script, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1:] == ["None", "True"]
    assert str(ROOT / "src") not in done.stdout


def test_format_with_the_sample_configuration(installed, tmp_path):
    """Can a log directory be formatted from the configuration that came with the package?"""
    find = "from headrace.cli.layout import sample_config; print(sample_config('server.properties'))"
    config = run(installed / "python", "-c", find, cwd=tmp_path).stdout.strip()

    done = run(installed / "kafka-storage", "format", "-t", "a-cluster", "-c", config, cwd=tmp_path)

    assert done.returncode == 0, done.stderr
    assert "cluster.id=a-cluster" in next(tmp_path.rglob("meta.properties")).read_text()


def test_package_has_all_that_is_not_code(installed):
    """Is every file beside the code in the package: pages, scripts, styles, tables, maps?"""
    packed = {*(installed.parent / "wheel.txt").read_text().splitlines()}
    here = [
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]

    assert len(here) > 800
    assert [name for name in here if name not in packed] == []
    assert "headrace/config/gateway.properties" in packed
