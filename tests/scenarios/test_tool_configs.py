"""kafka-configs against a broker in this process."""

import json

import pytest
from tests.wire_client import WireClient

from headrace.cli.configs import main


@pytest.fixture
def configs(headrace_cluster, capsys, monkeypatch, tmp_path):
    """Runs the tool; gives its exit code and what it printed."""
    monkeypatch.setenv("HEADRACE_HOME", str(tmp_path))
    with WireClient(headrace_cluster.port) as wire:
        wire.create_topic("orders")

    def run(*arguments, bootstrap=headrace_cluster.bootstrap):
        where = ("--bootstrap-server", bootstrap) if bootstrap else ()
        code = main([*where, *map(str, arguments)], "kafka-configs")
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run


@pytest.mark.parametrize("named", [("--topic", "orders"), ("--entity-type", "topics", "--entity-name", "orders")])
def test_settings_of_a_topic(configs, named):
    """Can settings be set, shown and removed with Kafka's texts, in both ways to name the topic?"""
    done = (0, "Completed updating config for topic orders.\n", "")
    assert configs("--alter", *named, "--add-config", "retention.ms=5,cleanup.policy=[compact,delete]") == done
    assert configs("--describe", *named) == (
        0,
        (
            "Dynamic configs for topic orders are:\n"
            "  cleanup.policy=compact,delete sensitive=false "
            "synonyms={DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, "
            "DEFAULT_CONFIG:log.cleanup.policy=delete}\n"
            "  retention.ms=5 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=5}\n"
        ),
        "",
    )
    assert configs("--alter", *named, "--delete-config", "retention.ms,cleanup.policy") == done
    assert configs("--describe", *named) == (0, "Dynamic configs for topic orders are:\n", "")


def test_settings_of_brokers(configs):
    """Can one broker and the default of all be set and shown apart?"""
    assert configs("--alter", "--broker-defaults", "--add-config", "log.retention.ms=777") == (
        0,
        "Completed updating default config for brokers in the cluster.\n",
        "",
    )
    assert configs("--alter", "--broker", 1, "--add-config", "log.retention.ms=888")[1] == (
        "Completed updating config for broker 1.\n"
    )
    out = configs("--describe", "--entity-type", "brokers")[1]

    assert out.splitlines()[0::2] == [
        "Dynamic configs for broker 1 are:",
        "Default configs for brokers in the cluster are:",
    ]
    assert "  log.retention.ms=888 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.retention.ms=888, " in out


def test_all_settings(configs):
    """Does --all show what nobody set, too?"""
    out = configs("--describe", "--topic", "orders", "--all")[1]

    assert out.startswith("All configs for topic orders are:\n")
    assert "  compression.type=producer sensitive=false synonyms={DEFAULT_CONFIG:compression.type=producer}\n" in out


def test_what_does_not_exist_is_no_success(configs):
    """Is Kafka's sentence printed where Kafka prints it, but with an exit code that says so?"""
    assert configs("--describe", "--topic", "nix") == (
        1,
        "The topic 'nix' doesn't exist and doesn't have dynamic config.\n",
        "",
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--alter", "--topic", "orders"), "At least one of --add-config, --add-config-file, or --delete-config must"),
        (("--describe",), "At least one entity type must be specified"),
        (("--describe", "--entity-type", "foo"), "Invalid entity type foo, the entity type must be one of topics"),
        (("--describe", "--topic", "x", "--group", "y"), "Only 'users' and 'clients' entity types may be specified"),
        (("--describe", "--entity-type", "topics", "--topic", "x"), "Duplicate entity type(s) specified: topics"),
        (("--alter", "--broker", "x", "--add-config", "a=b"), "The entity name for brokers must be a valid integer"),
        (("--alter", "--topic", "orders", "--add-config", "a"), "requirement failed: Invalid entity config: all"),
        (("--describe", "--topic", "a/b"), "Topic name is invalid: 'a/b' contains one or more characters"),
    ],
)
def test_refusals_are_kafkas(configs, arguments, sentence):
    """Is what cannot be meant refused on the error stream with exit code 1?"""
    code, out, err = configs(*arguments)

    assert (code, out) == (1, "")
    assert err.startswith(sentence)


def test_what_the_broker_refuses(configs):
    """Is the broker's reason told below Kafka's sentence, and is nothing changed?"""
    code, out, err = configs("--alter", "--topic", "orders", "--add-config", "retention.ms=soon")

    assert (code, out) == (1, "")
    assert err.splitlines()[0].startswith("Error while executing config command with args '--bootstrap-server ")
    assert err.splitlines()[1].startswith("org.apache.kafka.common.errors.InvalidConfigurationException: Invalid value")
    assert configs("--describe", "--topic", "orders")[1] == "Dynamic configs for topic orders are:\n"


def test_passwords_are_not_repeated(configs):
    """Is a password kept out of the message that repeats what was typed?"""
    err = configs("--alter", "--user", "alice", "--add-config", "SCRAM-SHA-256=[password=secret]")[2]

    assert "password=***" in err
    assert "secret" not in err


def test_a_file_of_settings(configs, tmp_path):
    """Are settings read from a properties file?"""
    path = tmp_path / "more.properties"
    path.write_text("retention.ms=7\n")

    assert configs("--alter", "--topic", "orders", "--add-config-file", path)[0] == 0
    (described,) = json.loads(configs("--describe", "--topic", "orders", "--output", "json")[1])
    assert [(entry["name"], entry["value"]) for entry in described["configs"]] == [("retention.ms", "7")]
