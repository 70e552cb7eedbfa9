"""The commands people type: one file per tool, and what sets the tools up on first use."""
