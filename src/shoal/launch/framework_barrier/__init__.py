"""The barrier of a Framework: a small program for an init container, and a call for programs of ours.

`environment` reads what the container was given, `connection` finds the API server, `watching` reads the Framework and
hears of its changes, `waiting` is the loop. What it decides by is in `shoal.dialects.framework.barrier`. Only the
standard library is used on the wire, so that the container starts at once.
"""
