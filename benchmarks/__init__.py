"""Benchmarks: each prints both sides and their ratio, and asserts nothing. Run them with `./dev bench [NAMES]`."""
