"""A listener with nothing special about it."""

from headrace.net.connection import Limits, Service
from headrace.net.listener import Listener


def listener_of(service: Service) -> Listener:
    """One whose connections this service answers."""
    return Listener(
        service,
        name="TEST",
        limits=Limits(),
        connections_max=10,
        connections_per_address_max=10,
        on_refuse=lambda peer, reason: None,
    )
