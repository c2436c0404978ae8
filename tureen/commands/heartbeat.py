"""``tureen heartbeat``: no row below an instant follows in a stream."""

from __future__ import annotations

import click

from tureen import command_options, console


@click.command()
@click.argument("source")
@click.argument("ms", type=int)
@click.option("--partition", type=int, help="Of this partition alone; without it, of all.")
@command_options.broker_options
def heartbeat(source: str, ms: int, partition: int | None, broker: command_options.Broker) -> None:
    """Promise that no row of a stream below MS, in ms since 1970, follows.

    NOW of the stream need not wait for its quiet partitions then.

    \b
    tureen heartbeat trades 1700000000000 --partition 3
    """
    with broker.client() as client:
        done = client.heartbeat(source, ms, partition)
    if broker.as_json:
        console.show_json(
            {"raised": list(done.raised), "unchanged": list(done.unchanged), "now_ms": done.now_ms}
        )
        return
    now = console.instant_of_ms(done.now_ms)
    if done.raised:
        raised = ", ".join(map(str, done.raised))
        console.err().print(f"partitions {raised} of {source} are past it; NOW is {now}", style="green")
    else:
        console.err().print(f"no effect: {source} was past it already; NOW is {now}", style="yellow")
