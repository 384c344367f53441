"""A logical ring on the switch tree: its arrows coloured by how many switches they pass."""

from __future__ import annotations

from stagegen.report.pictures.arrows import Arrows, room_for
from stagegen.report.pictures.canvas import Canvas, counted
from stagegen.report.pictures.layout import lay_out_ring
from stagegen.report.pictures.network import draw_network, left_out, network_of
from stagegen.schedule import Message, Ring, RingPipeline
from stagegen.topology import Topology


def ring_picture(topology: Topology, ring: Ring) -> Canvas:
    """Return the picture of a ring."""
    return _picture(topology, ring, f"Logical ring {ring.construction} on {topology.name}", "")


def pipeline_picture(topology: Topology, pipeline: RingPipeline) -> Canvas:
    """Return the picture of an allreduce: its ring, which it goes round nearly twice."""
    title = f"Allreduce over logical ring {pipeline.ring.construction} on {topology.name}"
    steps = f" {counted(pipeline.steps, 'step')}, the first {pipeline.combining_steps} combine."
    return _picture(topology, pipeline.ring, title, steps)


def _picture(topology: Topology, ring: Ring, title: str, more: str) -> Canvas:
    pairs = zip(ring.order, ring.order[1:] + ring.order[:1], strict=True)
    hops = {Message(a, b): topology.hops(a, b) for a, b in pairs if a != b}
    layout = lay_out_ring(topology.tree, ring.order)
    network = network_of(topology, layout, room_for(layout.place, hops, 1.2), 1)
    canvas = Canvas(network.width, network.height)
    draw_network(canvas, network, {})
    Arrows(hops, ("passes 1 switch", "passes {} switches")).draw(canvas, network)
    between = f"{ring.max_hops} switch{'es' * (ring.max_hops != 1)}"
    facts = f"{counted(len(ring.order), 'rank')}, at most {between} between neighbours."
    canvas.title(title, facts + more + left_out(topology))
    return canvas
