"""Draws what the facts hold: routes of inputs, who hears whom, how far padding got."""
