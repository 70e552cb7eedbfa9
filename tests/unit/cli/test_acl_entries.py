"""Access rules: spellings people use, and how Kafka shows them."""

import pytest

from headrace.cli.acl_entries import UNKNOWN, Entry, Pattern, operation, principal, supported
from headrace.model.acl_words import ALLOW, TOPIC
from headrace.model.errors import HeadraceError


@pytest.mark.parametrize("text", ["DescribeConfigs", "describe_configs", " DESCRIBE_CONFIGS ", "describeconfigs"])
def test_operations_have_many_spellings(text):
    """Is an operation understood however it is written?"""
    assert operation(text) == 10


def test_what_is_no_operation():
    """Is anything else unknown, and is an operation that a topic does not have not among its own?"""
    assert operation("fly") == UNKNOWN
    assert operation("ClusterAction") not in supported(TOPIC)
    assert operation("All") in supported(TOPIC)


@pytest.mark.parametrize("text", ["alice", ":alice", "User:", ""])
def test_a_principal_is_a_kind_and_a_name(text):
    """Is anything else refused in Kafka's words?"""
    with pytest.raises(HeadraceError, match="expected a string in format principalType:principalName"):
        principal(text)


def test_rules_are_shown_as_kafka_shows_them():
    """Are patterns and entries written in Kafka's form?"""
    pattern = Pattern(kind=TOPIC, name="d1", pattern_type=4)
    entry = Entry(principal=principal("User:CN=a:b"), host="*", operation=3, permission=ALLOW)

    assert str(pattern) == "(resourceType=TOPIC, name=d1, patternType=PREFIXED)"
    assert str(entry) == "(principal=User:CN=a:b, host=*, operation=READ, permissionType=ALLOW)"
