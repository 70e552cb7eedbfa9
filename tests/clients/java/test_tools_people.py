"""What our tools and Kafka's print of people: their quotas, credentials and permissions, which only Kafka serves."""

import pytest

from clients.java.administration_tools import Tools
from clients.java.live_clients import until
from headrace.testing.peer import KafkaPeer

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


@pytest.fixture(scope="module")
def running(java, tmp_path_factory):
    """A running Kafka that looks at permissions."""
    with KafkaPeer(tmp_path_factory.mktemp("tools") / "broker", settings=AUTHORIZER) as broker:
        yield broker


@pytest.fixture
def tools(java, running, capsys, tmp_path, monkeypatch):
    """Both tools, with a topic to look at."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path / "home"))
    made = Tools(java, running, capsys, tmp_path)
    made.create("d1")
    return made


def test_configs_of_people(tools):
    """Are quotas and credentials of users, clients and addresses shown and changed as Kafka's kafka-configs does?"""
    for line in (
        "--alter --user alice --add-config SCRAM-SHA-256=[iterations=4096,password=pw]",
        "--alter --user alice --add-config producer_byte_rate=1024,consumer_byte_rate=2048,request_percentage=12.25",
        "--alter --user bob --add-config producer_byte_rate=123456789",
        "--alter --user alice --client c1 --add-config request_percentage=50",
        "--alter --client-defaults --add-config producer_byte_rate=1e10",
        (
            "--alter --entity-type clients --entity-name c --entity-type users --entity-default --add-config "
            "consumer_byte_rate=3"
        ),
        "--describe --user alice",
        "--describe --entity-type users",
        "--describe --entity-type clients",
        "--describe --entity-type users --entity-type clients",
        "--describe --entity-type clients --entity-name c --entity-type users",
        "--alter --ip 1.2.3.4 --add-config connection_creation_rate=5",
        "--describe --entity-type ips",
        "--alter --client c1 --delete-config producer_byte_rate",
        "--alter --user alice --add-config x=y",
        "--alter --client-metrics m1 --add-config interval.ms=1000",
        "--describe --entity-type client-metrics",
        "--describe --broker-logger 1",
    ):
        tools.compare("configs", line)


def test_a_credential_of_ours(tools):
    """Does Kafka accept and show the credential that we computed from a password?"""
    tools.ours("configs", "--alter --user carol --add-config SCRAM-SHA-512=[iterations=5000,password=pw]")

    # Kafka answers before its brokers know.
    shown = until(lambda: tools.theirs("configs", "--describe --user carol"), lambda told: told[1], "it is known")
    assert shown == (0, "SCRAM credential configs for user-principal 'carol' are SCRAM-SHA-512=iterations=5000\n")


def test_acls(tools):
    """Are rules added, listed and removed as by Kafka's kafka-acls? Their order is by chance there, sorted here."""
    assert tools.ours("acls", "--add --allow-principal User:alice --topic d1")[1] == (
        "Adding ACLs for resource `ResourcePattern(resourceType=TOPIC, name=d1, patternType=LITERAL)`: \n"
        " \t(principal=User:alice, host=*, operation=ALL, permissionType=ALLOW)\n\n"
    )
    tools.ours("acls", "--add --consumer --allow-principal User:bob --topic d1 --group g")
    tools.ours("acls", "--add --producer --allow-principal User:pro --topic d --resource-pattern-type prefixed")
    for line in (
        "--add --allow-principal User:alice --topic d1",
        "--list",
        "--list --topic d1 --resource-pattern-type match",
        "--list --principal User:bob",
        "--remove --allow-principal User:alice --topic d1 --force",
        "--list --topic d1",
        "--add --allow-principal alice --topic d1",
        "--list --producer",
    ):
        tools.compare("acls", line, sort=True)
