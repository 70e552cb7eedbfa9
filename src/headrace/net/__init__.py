"""Sockets only: frames in, frames out, limits on both; what is inside a frame is not this room's business."""
