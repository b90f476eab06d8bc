"""The barrier of a Framework: a small program for an init container, and a call for programs of Shoal's own.

`environment` reads what the container was given, `connection` finds the API server, `framework_client` reads the
Framework and watches its changes, `barrier` is the loop. The rules of its decision are in
`shoal.dialects.framework.barrier`. Only the standard library is used on the wire, so that the container starts at once.
"""
