"""Virtual time."""

from headrace.sim.scheduler import Scheduler


def test_what_is_due_first_happens_first():
    """Is the order that of the times, and among equal times that of asking?"""
    scheduler, seen = Scheduler(1), []
    for delay_ms, name in ((5, "c"), (1, "a"), (1, "b"), (9, "never")):
        scheduler.after(delay_ms, lambda name=name: seen.append((scheduler.now_ms, name)))
    scheduler.run(8)
    assert seen == [(1, "a"), (1, "b"), (5, "c")]
    assert scheduler.now_ms == 8


def test_cancelled_does_not_happen():
    """Does a cancelled timer stay silent, and leave the clock alone?"""
    scheduler, seen = Scheduler(1), []
    scheduler.after(3, lambda: seen.append("cancelled")).cancel()
    assert not scheduler.step()
    assert (seen, scheduler.now_ms, scheduler.events) == ([], 0, 0)


def test_check_after_each():
    """Is the check made after every single event?"""
    scheduler, checks = Scheduler(1), []
    for when_ms in (4, 4, 7):
        scheduler.at(when_ms, lambda: None)
    scheduler.run(10, lambda: checks.append(scheduler.now_ms))
    assert checks == [4, 4, 7]
