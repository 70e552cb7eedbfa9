"""Every message of the protocol: a version-free class each, with its schema in the text file beside the module."""
