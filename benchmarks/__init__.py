"""Measurements of the linter on released trees; nothing here is installed."""
