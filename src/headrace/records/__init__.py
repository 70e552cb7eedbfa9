"""Record batches as bytes: peek, check, patch, walk, build, compress; no object per record on the hot path."""
