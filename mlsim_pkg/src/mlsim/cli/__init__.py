"""The command `mlsim`: one module for each group of its subcommands."""
