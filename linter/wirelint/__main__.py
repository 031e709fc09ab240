"""``python -m wirelint``."""

from wirelint.cli import main

main()
