"""What pages show when there is nothing, or nobody answers."""

import uuid

import pytest

from headrace.client.admin import KafkaAdmin
from headrace.testing.cluster import Cluster


def test_a_cluster_that_goes_and_comes(own_tab, tmp_path):
    """Does an empty cluster say what to do next, one that is away that it is, and one that is back its content?"""
    with Cluster(directory=tmp_path) as cluster:
        tab = own_tab(cluster.bootstrap)
        page = tab.open("/")
        page.wait_for_selector("text=Nothing flows here yet")
        tab.shot("empty")
        with KafkaAdmin(bootstrap_servers=cluster.bootstrap) as admin:
            admin.create_topics(["first"])
        page.wait_for_selector("text=Nothing flows here yet", state="detached")

        assert not page.query_selector(".hr-away")
        cluster.kill(1)
        page.wait_for_selector(".hr-stale >> text=What you see is what was known before")
        page.wait_for_selector(".hr-away")
        tab.open("/topics")
        page.wait_for_selector("text=This could not be loaded")
        tab.shot("failed")

        cluster.restart(1)
        page.click("text=Try again")
        page.wait_for_selector(".hr-table >> text=first")
        page.wait_for_selector(".hr-away", state="detached")


@pytest.mark.parametrize(
    ("path", "sentence", "way_on"),
    [
        ("/topics/{}", "There is no topic '{}' here.", "All topics"),
        ("/groups/{}", "There is no group '{}' here.", "Look again"),
        ("/transactions/{}", "Nobody has used the transactional id '{}' here.", "Look again"),
        ("/brokers/77", "There is no broker 77 here", "Look again"),
        ("/brokers/first", "Brokers have numbers.", "All brokers"),
        ("/pipelines/a/b", "Is the pipeline running?", "All pipelines"),
    ],
)
def test_what_is_not_there(tab, path, sentence, way_on):
    """Does the page of something that does not exist say so, and where to go on, without a red face?"""
    name = f"absent-{uuid.uuid4().hex[:8]}"
    page = tab.open(path.format(name))
    page.wait_for_selector(f"main >> text={sentence.format(name)}")

    assert page.is_visible(f".hr-empty >> text={way_on}")
    assert not page.query_selector(".hr-failed")
    assert not page.is_visible("main >> text='Abort'")
    assert name not in path.format(name) or page.title().startswith(name)


def test_no_such_page(tab):
    """Is an address that leads nowhere answered in the console's own house, with a way back?"""
    page = tab.open("/nowhere")
    assert "There is no page here" in page.inner_text("main")
    page.click("main >> text=Overview")
    page.wait_for_url("**/console/")

    (complaint,) = tab.complaints  # the browser's own word for the status
    assert "404" in complaint
    tab.complaints.clear()
