"""The body: assembly, dispatch, one numbered handler file per API, and the drivers that run the cores."""
