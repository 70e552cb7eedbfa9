"""The minds of the group coordinator: what groups are, who is in them, and how far they have read."""
