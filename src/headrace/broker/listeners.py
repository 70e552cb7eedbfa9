"""The addresses of a broker: what it binds, and what it tells clients to connect to."""

from __future__ import annotations

import socket
import sys
from typing import TYPE_CHECKING, NamedTuple

from headrace.model.errors import HeadraceError
from headrace.net.connection import Limits
from headrace.net.listener import Listener

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from headrace.net.connection import Service
    from headrace.settings.broker import BrokerConfig


class Endpoint(NamedTuple):
    """An address clients of one listener are told."""

    listener: str
    host: str
    port: int


class CannotListen(HeadraceError):
    """An address could not be bound."""


def limits_from(config: BrokerConfig) -> Limits:
    """What a connection may cost, from the settings."""
    return Limits(
        frame_bytes_max=config["socket.request.max.bytes"],
        first_bytes_timeout_s=config["request.first.bytes.timeout.ms"] / 1000,
        frame_timeout_s=config["request.frame.timeout.ms"] / 1000,
        idle_timeout_s=config["connections.max.idle.ms"] / 1000,
        partial_bytes_max=config["queued.max.request.bytes"] if config["queued.max.request.bytes"] > 0 else sys.maxsize,
        send_buffer_bytes=config["socket.send.buffer.bytes"],
        receive_buffer_bytes=config["socket.receive.buffer.bytes"],
    )


async def open_listeners(
    config: BrokerConfig, services: Mapping[str, Service], on_refuse: Callable[[str, str], None]
) -> tuple[list[Listener], dict[str, Endpoint]]:
    """Bind every listener, all or none; nobody is let in before `serve`, when the addresses to tell are known."""
    opened: list[Listener] = []
    bound: dict[str, int] = {}
    try:
        for wanted in config.listeners:
            listener = Listener(
                services[wanted.name],
                name=wanted.name,
                limits=limits_from(config),
                connections_max=config["max.connections"],
                connections_per_address_max=config["max.connections.per.ip"],
                address_exceptions=config.connections_per_ip_overrides,
                on_refuse=on_refuse,
            )
            await _bind(listener, wanted.host, wanted.port, backlog=config["socket.listen.backlog.size"])
            opened.append(listener)
            bound[wanted.name] = listener.port
    except CannotListen:
        for listener in opened:
            await listener.stop()
        raise
    endpoints = {
        told.name: Endpoint(told.name, told.host or this_host(), told.port or bound[told.name])
        for told in (*config.advertised, *config.topology.advertised_controllers)
    }
    return opened, endpoints


async def _bind(listener: Listener, host: str, port: int, *, backlog: int) -> None:
    try:
        await listener.bind(host, port, backlog=backlog)
    except OSError as error:
        raise _cannot(listener.name, host, port, error) from error


async def serve(listeners: Sequence[Listener]) -> None:
    """Let clients in."""
    for listener in listeners:
        try:
            await listener.serve()
        except OSError as error:
            raise _cannot(listener.name, listener.host, listener.port, error) from error


def _cannot(name: str, host: str, port: int, error: OSError) -> CannotListen:
    return CannotListen(
        f"Listener {name} cannot use {host or '*'}:{port}: {error.strerror or error}. "
        "Stop what is using it (is a broker running already?), or choose another port in `listeners`."
    )


def this_host() -> str:
    """A name of this machine that resolves, for clients of a listener that binds every interface."""
    name = socket.gethostname()
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return "localhost"
    return name
