"""Builders of the sample models: one module per topic folder, and the few tools that they share."""
