"""The operator: watches jobs of every dialect, calls the engine and writes the difference."""
