"""Where cluster metadata is committed."""
