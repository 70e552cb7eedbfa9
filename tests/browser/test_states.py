"""What pages show when there is nothing, or nobody answers."""

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

        cluster.kill(1)
        page.wait_for_selector(".hr-stale >> text=What you see is what was known before")
        tab.open("/topics")
        page.wait_for_selector("text=This could not be loaded")
        tab.shot("failed")

        cluster.restart(1)
        page.click("text=Try again")
        page.wait_for_selector(".hr-table >> text=first")
