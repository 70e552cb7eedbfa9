"""One table of every knob, and what is read from it: files, DescribeConfigs, the reference page."""
