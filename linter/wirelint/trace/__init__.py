"""Tracing: what reads each graph input, and what that says about the input's role."""
