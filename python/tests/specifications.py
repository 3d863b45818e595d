"""Specifications that several tests run."""

# Thirteen units, twelve of them of about a second.
THIRTEEN_UNITS = """
kind = "path"
seed = 7
prompts = 12
lengths = { from = 10, to = 1e7, per_decade = 1 }
queries = [[1.0, 0.0], [0.6, -0.8]]

[[law]]
name = "signs"
family = "rademacher"
dimension = 2
"""
UNITS = 13
