"""What two sides of a connection agree on."""

import pytest

from headrace.client.fault import NotServed
from headrace.client.handshake import METADATA, Agreement

DESCRIBE_ACLS, FETCH = 29, 1


@pytest.mark.parametrize(
    ("api_key", "sentence"),
    [
        (
            METADATA,
            (
                "The broker at here:1 does not serve Metadata. "
                "Is that a controller's port? Give one at which a broker listens for clients."
            ),
        ),
        (DESCRIBE_ACLS, "The broker at here:1 does not serve DescribeAcls. It may be too old, or lack the feature."),
    ],
)
def test_what_is_not_served_is_said(api_key, sentence):
    """Is it said which request is not served, and what may be the matter: a controller's port, for one?"""
    with pytest.raises(NotServed) as caught:
        Agreement("here:1", {FETCH: (4, 18)}, {}).version_of(api_key)

    assert sentence == str(caught.value)
