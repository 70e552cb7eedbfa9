"""What a client cannot do, said in one sentence, and what to do about it in another."""

from headrace.model.errors import HeadraceError


class ClientFault(HeadraceError):
    """Something went wrong between us and the cluster."""

    def __init__(self, problem: str, remedy: str = "") -> None:
        super().__init__(f"{problem}. {remedy}" if remedy else f"{problem}.")
        self.problem = problem
        self.remedy = remedy


class NoBroker(ClientFault):
    """Nothing that speaks Kafka's protocol answers there."""


class TimedOut(ClientFault):
    """No answer in the time allowed."""


class NotAuthenticated(ClientFault):
    """The broker does not believe who we say we are, or the two sides cannot agree how to prove it."""


class NotServed(ClientFault):
    """The broker does not know this request, or not in a version we speak."""


class ConnectionEnded(ClientFault):
    """The broker closed the connection."""


class UnknownOption(ClientFault, ValueError):
    """An option no client has; the nearest one that exists is named."""


class BadOption(ClientFault, ValueError):
    """An option's value cannot be, or two options contradict each other."""


class MissingPackage(ClientFault, ImportError):
    """A package the clients stand on is not installed."""


class Closed(ClientFault):
    """The client was closed and cannot be asked any more."""
