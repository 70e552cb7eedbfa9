"""The segment log on disk: files port, segment, indexes, log, recovery, retention, checkpoints."""
