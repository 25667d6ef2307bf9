"""Hermes, by a memory provider and a context engine of ours in its process.

Only the standard library and Hermes itself are imported, but by `adapter`, which is our own program's.
"""
