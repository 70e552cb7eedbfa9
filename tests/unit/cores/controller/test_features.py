"""Levels of features."""

import pytest
from msgspec.structs import replace

from controller_shell import CONTROLLER, ControllerShell
from headrace.cores.controller.features import METADATA_VERSION_NAMES, FeatureUpdate, UpgradeType, update_features
from headrace.cores.controller.policy import ELR_VERSION, Policy, elr_enabled
from headrace.cores.metadata import RESOURCE_BROKER
from headrace.model.errors import ErrorCode
from headrace.model.metadata_records import ConfigRecord, ControllerFeature, RegisterControllerRecord

CAN = {"metadata.version": (7, 25), ELR_VERSION: (0, 1), "group.version": (0, 1)}


def update(cluster: ControllerShell, name: str, level: int, kind: int = UpgradeType.UPGRADE, **fields):
    """The code and message of a refusal, or None."""
    controller = replace(CONTROLLER, supported=CAN)
    wanted = [FeatureUpdate(name=name, level=level, upgrade_type=kind)]
    error = cluster.run(update_features, wanted, **{"controller": controller, "policy": cluster.policy, **fields})
    return error and (error.code, error.message)


def test_feature_goes_up_and_down():
    """Is a level raised, lowered on purpose, and forgotten at 0?"""
    cluster = ControllerShell()

    assert None is update(cluster, "group.version", 1)
    assert 1 == cluster.metadata.features["group.version"]
    assert None is update(cluster, "group.version", 0, UpgradeType.SAFE_DOWNGRADE)
    assert "group.version" not in cluster.metadata.features


def test_validation_alone_changes_nothing():
    """Does validate_only say what would be, and commit nothing?"""
    cluster = ControllerShell()
    before = cluster.next_offset

    assert None is update(cluster, "group.version", 1, validate_only=True)
    assert None is not update(cluster, "group.version", 9, validate_only=True)
    assert before == cluster.next_offset


@pytest.mark.parametrize(
    ("name", "level", "kind", "words"),
    [
        ("group.version", 0, 7, "The controller does not support the given upgrade type."),
        ("group.version", -1, 1, "A feature version cannot be less than 0."),
        ("group.version", 2, 1, "Local controller 100 only supports versions 0-1"),
        ("new.version", 1, 1, "Local controller 100 does not support this feature."),
        ("group.version", 1, 2, "Can't downgrade to a newer version."),
        (
            "metadata.version",
            24,
            1,
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or unsafe",
        ),
    ],
)
def test_impossible_levels_are_refused(name, level, kind, words):
    """Is each impossible level refused in Kafka's words?"""
    code, message = update(ControllerShell(), name, level, kind)

    assert ErrorCode.INVALID_UPDATE_VERSION == code
    assert message.startswith(f"Invalid update version {level} for feature {name}. {words}")


def test_metadata_version_does_not_go_back_over_changed_records():
    """Can it be lowered where the records stayed the same, and not where they did not?"""
    cluster = ControllerShell()

    assert None is update(cluster, "metadata.version", 23, UpgradeType.SAFE_DOWNGRADE)
    assert (
        ErrorCode.INVALID_UPDATE_VERSION,
        (
            "Unsupported metadata.version downgrade from 4.0-IV1 to 4.0-IV0. Refusing to perform the requested "
            "downgrade because it might delete metadata information."
        ),
    ) == update(cluster, "metadata.version", 22, UpgradeType.SAFE_DOWNGRADE)
    assert "Unsafe metadata downgrade is not supported" in str(
        update(cluster, "metadata.version", 22, UpgradeType.UNSAFE_DOWNGRADE)
    )
    assert 23 == cluster.metadata.features["metadata.version"]
    assert "4.0-IV3" == METADATA_VERSION_NAMES[25]


def test_every_node_must_support_the_level():
    """Is a level refused while a broker or a controller cannot do it, or has not said?"""
    cluster = ControllerShell()
    cluster.register(1, features={"metadata.version": (7, 25)})
    assert "Broker 1 does not support this feature." in str(update(cluster, "group.version", 1))

    cluster.unregister(1)
    controller = replace(CONTROLLER, supported=CAN, quorum=(100, 101))
    assert "controller 101 has not registered" in str(update(cluster, "group.version", 1, controller=controller))

    feature = ControllerFeature(name="metadata.version", min_supported_version=7, max_supported_version=25)
    cluster.commit([RegisterControllerRecord(controller_id=101, features=(feature,))])
    assert "Controller 101 does not support" in str(update(cluster, "group.version", 1, controller=controller))
    feature = ControllerFeature(name="group.version", min_supported_version=0, max_supported_version=1)
    cluster.commit([RegisterControllerRecord(controller_id=101, features=(feature,))])
    assert None is update(cluster, "group.version", 1, controller=controller)


def test_one_bad_update_spoils_the_request():
    """Are updates made all or none?"""
    cluster = ControllerShell()
    wanted = [FeatureUpdate(name="group.version", level=1), FeatureUpdate(name="x", level=1)]

    error = cluster.run(update_features, wanted, controller=replace(CONTROLLER, supported=CAN))

    assert ErrorCode.INVALID_UPDATE_VERSION == error.code
    assert "group.version" not in cluster.metadata.features


def test_eligible_replicas_need_a_metadata_version_that_can_say_so():
    """Is the dependency told by number and name?"""
    cluster = ControllerShell()
    cluster.metadata.features["metadata.version"] = 22

    assert (
        f"Invalid update version 1 for feature {ELR_VERSION}. {ELR_VERSION} could not be set to 1 because it depends "
        "on metadata.version=23 (4.0-IV1)"
    ) == update(cluster, ELR_VERSION, 1)[1]


def test_eligible_replicas_want_one_min_isr_for_all():
    """Does turning them on write the cluster's min.insync.replicas down and remove those of single brokers?"""
    cluster = ControllerShell(policy=Policy(min_insync_replicas=2))
    one = ConfigRecord(resource_type=RESOURCE_BROKER, resource_name="1", name="min.insync.replicas", value="3")
    cluster.commit([one])

    assert None is update(cluster, ELR_VERSION, 1)

    assert elr_enabled(cluster.metadata)
    assert {"min.insync.replicas": "2"} == cluster.metadata.configs(RESOURCE_BROKER, "")
    assert {} == cluster.metadata.configs(RESOURCE_BROKER, "1")
