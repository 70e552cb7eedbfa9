"""One numbered file per API; a file's `API` is what ApiVersions advertises."""
