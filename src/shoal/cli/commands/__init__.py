"""The subcommands of `shoal`: one module each, named as the command is typed."""
