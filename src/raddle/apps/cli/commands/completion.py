"""`raddle completion`: the script that makes a shell complete commands, options and thread ids."""

from __future__ import annotations

import click

from raddle.apps.cli import output


@click.command(
    help="""Print the script that makes SHELL complete commands, options and thread ids.

    \b
    bash   eval "$(raddle completion bash)"      in ~/.bashrc
    zsh    eval "$(raddle completion zsh)"       in ~/.zshrc, after compinit
    fish   raddle completion fish | source       in ~/.config/fish/config.fish""",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script."""
    from click.shell_completion import get_completion_class  # noqa: PLC0415  only this command needs it

    from raddle.apps.cli.main import raddle  # noqa: PLC0415  `main` imports this module

    kind = get_completion_class(shell)
    assert kind is not None
    output.write(kind(raddle, {}, "raddle", "_RADDLE_COMPLETE").source() + "\n")
