"""Access rules in words."""

from headrace.model.acl_words import OPERATIONS, PATTERNS, PERMISSIONS, RESOURCES


def test_numbers_of_the_protocol():
    """Are the words those of Kafka's numbers?"""
    assert (RESOURCES[2], RESOURCES[4], OPERATIONS[3], OPERATIONS[10], PERMISSIONS[3]) == (
        "TOPIC",
        "CLUSTER",
        "READ",
        "DESCRIBE_CONFIGS",
        "ALLOW",
    )
    assert PATTERNS["PREFIXED"] == 4
