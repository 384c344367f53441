"""The subcommands of ``stagegen schedule``, one module for each collective."""
