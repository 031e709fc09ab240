"""What verifying gave, for programs: one JSON document, described by ``docs/verify.schema.json``."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from wirelint._version import __version__
from wirelint.verify.claims import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirelint.verify.process import Feed
    from wirelint.verify.verification import Verification

__all__ = ["SCHEMA", "render"]

SCHEMA = "wirelint-verify/1"


def render(found: Sequence[Verification], *, show_inputs: bool = False) -> str:
    """One document for all models."""
    counts = Counter(claim.status for made in found for claim in made.claims)
    document = {
        "schema": SCHEMA,
        "tool": {"name": "wirelint", "version": __version__},
        "models": [_model(made, show_inputs=show_inputs) for made in found],
        "summary": {
            "models": len(found),
            "not_run": sum(bool(made.stopped) for made in found),
            **{status.name.lower(): counts[status] for status in Status},
        },
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _model(made: Verification, *, show_inputs: bool) -> dict[str, Any]:
    return {
        "path": made.path,
        "measured_on": made.path_name,
        "seed": made.seed,
        "stopped": made.stopped or None,
        "refused": made.refused,
        "not_finite": made.infinite,
        "claims": [claim.as_dict() for claim in made.claims],
        "agreement": None if made.agreement is None else made.agreement.as_dict(),
        "against": None if made.against is None else made.against.as_dict(),
        **({"inputs": [_input(feed) for feed in made.feeds]} if show_inputs else {}),
        "seconds": round(made.seconds, 4),
    }


def _input(feed: Feed) -> dict[str, Any]:
    numbers = feed.array.astype(float) if feed.array.dtype.kind not in "biu" else feed.array
    return {
        "name": feed.names[0] if feed.names else None,
        "role": feed.role,
        "dtype": feed.array.dtype.name,
        "shape": list(feed.array.shape),
        "values": numbers.tolist(),
    }
