"""Deterministic minds: they decide, they never act; time and chance are arguments."""
