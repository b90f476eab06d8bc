"""The Kubernetes vocabulary: objects, kinds, quantities, selectors, names, patches, conditions, owners.

Everything here is a pure function of plain data. An object is the dictionary its JSON gives; nothing in
this room opens a socket, reads a clock or draws a random number.
"""
