"""The measurements of the command-line tools."""

from bench import plan
from bench.tools_workloads import BIN, tool_workloads


def test_every_measured_tool_is_there_and_has_a_target():
    """Has each tool that is measured its launcher, its place among the workloads, and a target?"""
    names = [work.name for work in plan.workloads(quick=True)]
    for tool in tool_workloads(quick=True):
        assert (BIN / f"{tool.tool}.sh").is_file()
        assert tool.name in names
        assert (tool.name, "s") in plan.TARGETS
