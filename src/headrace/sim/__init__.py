"""Clusters in virtual time: the same seed gives the same run, byte for byte."""
