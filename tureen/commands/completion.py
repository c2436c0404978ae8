"""``tureen completion``: what a shell needs to complete `tureen`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  eval "$(tureen completion bash)"     in ~/.bashrc
    zsh:   eval "$(tureen completion zsh)"      in ~/.zshrc
    fish:  tureen completion fish | source      in ~/.config/fish/config.fish
    """
    from tureen.cli import main

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "tureen", "_TUREEN_COMPLETE").source())
