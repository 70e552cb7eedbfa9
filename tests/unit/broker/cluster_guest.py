"""A second broker that exists only as far as the first one's controller knows: it registers, beats, goes silent."""

from uuid import UUID

from headrace.broker.features import SUPPORTED
from headrace.broker.handlers import api62_broker_registration, api63_broker_heartbeat
from headrace.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from headrace.wire.messages.broker_registration import BrokerRegistrationRequest, Feature, Listener

FAR = 2**40
"""A metadata offset that nobody is behind of."""


class Guest:
    """Broker 2."""

    def __init__(self, desk, *, node_id=2):
        self._desk = desk
        self.node_id = node_id
        self.incarnation_id = UUID(int=1 << 80 | node_id)
        self.directory_id = UUID(int=2 << 80 | node_id)
        self.epoch = -1

    def register(self, *, version=4, **changed):
        """Join the cluster; gives the answer."""
        fields = {
            "broker_id": self.node_id,
            "cluster_id": self._desk.broker.cluster_id,
            "incarnation_id": self.incarnation_id,
            "listeners": (Listener(name="PLAINTEXT", host="guest", port=9092),),
            "features": tuple(
                Feature(name=name, min_supported_version=low, max_supported_version=high)
                for name, (low, high) in SUPPORTED.items()
            ),
            "log_dirs": (self.directory_id,),
        }
        request = BrokerRegistrationRequest(**fields | changed)
        answer = self._desk.ask(api62_broker_registration.API, request, version=version, listener="CONTROLLER")
        if not answer.error_code:
            self.epoch = answer.broker_epoch
        return answer

    def beat(self, *, version=2, **changed):
        """Say that it lives; gives the answer."""
        fields = {"broker_id": self.node_id, "broker_epoch": self.epoch, "current_metadata_offset": FAR}
        request = BrokerHeartbeatRequest(**fields | changed)
        return self._desk.ask(api63_broker_heartbeat.API, request, version=version, listener="CONTROLLER")

    def join(self):
        """Register, and serve."""
        assert self.register().error_code == 0
        assert not self.beat().is_fenced
        return self

    @property
    def registration(self):
        """The guest as the cluster knows it."""
        return self._desk.broker.metadata.brokers.get(self.node_id)
