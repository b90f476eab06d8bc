"""The operator: watches jobs of every language, lets the engine decide and writes the difference."""
