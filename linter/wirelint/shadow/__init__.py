"""Shadow execution: an abstract interpreter that runs a graph without its weights and says what depends on what."""
