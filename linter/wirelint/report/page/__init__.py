"""The parts of the HTML report: its style, and the sections of one model."""
