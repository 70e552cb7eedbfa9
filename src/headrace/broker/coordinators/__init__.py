"""The shells around the coordinators' cores: one shard per partition of a coordinator's topic."""
