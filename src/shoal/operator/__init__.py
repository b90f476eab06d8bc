"""The running loops: each watches, lets a pure function decide, and writes the difference.

`standard.standard_loops` is what the embedded cluster runs beside its store.
"""
