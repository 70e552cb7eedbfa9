"""The rows themselves, one file per theme; `headrace.settings.table` says how they are written."""
