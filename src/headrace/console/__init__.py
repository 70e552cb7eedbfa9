"""The web console: pages about a cluster, on the gateway's application, under /console.

It needs nothing but the gateway: no other host is asked for anything, and nothing is kept but a cookie that says
light or dark. A page is one file (`*_page.py`) and one line in `page_table`; what it shows comes from `data_*.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from headrace.gateway.services import Services


def mount(app: Starlette, services: Services) -> None:
    """Serve the console on a gateway's application; NiceGUI allows for one at a time in a process."""
    from headrace.console.mounting import mount_console  # noqa: PLC0415  (pure parts are used without NiceGUI)

    mount_console(app, services)
