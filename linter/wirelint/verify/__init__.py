"""Runs models to see whether what the static analysis says of them is so."""

from wirelint.verify import json_document, junit, text
from wirelint.verify.claims import Claim, Status
from wirelint.verify.process import Limits, Worker
from wirelint.verify.verification import Verification, verify

__all__ = ["Claim", "Limits", "Status", "Verification", "Worker", "json_document", "junit", "text", "verify"]
