"""nanobot, by what we give its SDK, its program and its gateway, in its process.

Only the standard library and nanobot itself are imported, but by `adapter`, which is our own program's.
"""
