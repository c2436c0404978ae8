"""The subcommands of ``tureen`` that need nothing but the client; each a module with one command."""
