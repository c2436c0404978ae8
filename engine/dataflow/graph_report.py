"""What is told of a graph: its operators as entities, and what they keep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Mapping

from engine.dataflow.entities import GraphEntities, OperatorEntity, digest
from engine.dataflow.fed_sink import FedSink
from engine.dataflow.graph_nodes import GraphNodes
from engine.dataflow.operator_tree import NodeState


def entities(
    nodes: GraphNodes, sinks: Mapping[Hashable, FedSink], sink_of: Mapping[str, Hashable], over: str
) -> GraphEntities:
    """Returns operators and sinks as they are told of. sink_of: the sink of each query that is wanted. over:
    the names of the sources. O(nodes * sinks that read them + queries).
    """
    ids = {key: nodes.id_of(key, node, over) for key, node in nodes.by_key.items()}
    of_node = {id(node): ids[key] for key, node in nodes.by_key.items()}
    readers = _readers(sinks)
    found = [
        OperatorEntity(
            ids[key],
            node.usage,
            readers[id(node)],
            tuple(of_node[id(below)] for below in node.inputs),
            node,
            node.sources,
        )
        for key, node in nodes.by_key.items()
    ]
    names = {end: f"sink/{over}/{digest(end)}" for end in sinks}
    found += [
        OperatorEntity(names[end], each.usage, len(each.sink.query_ids), (of_node[id(each.nodes[-1])],), None)
        for end, each in sinks.items()
    ]
    below = {names[end]: tuple(of_node[id(node)] for node in each.nodes) for end, each in sinks.items()}
    return GraphEntities(found, below, {one: names[end] for one, end in sink_of.items()})


def shares(sinks: Mapping[Hashable, FedSink]) -> Iterator[tuple[Collection[str], int]]:
    """Yields queries that share a sink, and the bytes that each keeps: equal parts of the sink and of the
    operators that it reads, among all who read these. O(sinks * operators that they read).
    """
    readers = _readers(sinks)
    nodes = {id(node): node for each in sinks.values() for node in each.nodes}
    part = {number: node.nbytes // readers[number] for number, node in nodes.items() if readers[number]}
    for each in sinks.values():
        queries = each.sink.query_ids
        if queries:
            own = each.sink.nbytes // len(queries)
            yield queries, own + sum(part[id(node)] for node in each.nodes)


def _readers(sinks: Mapping[Hashable, FedSink]) -> Counter[int]:
    """How many queries read each node, by its id."""
    readers = Counter[int]()
    for each in sinks.values():
        readers.update({id(node): len(each.sink.query_ids) for node in each.nodes})
    return readers


def node_state(nodes: GraphNodes, sinks: Mapping[Hashable, FedSink], key: Hashable, over: str) -> NodeState:
    """Returns what the node of a key keeps, if it is there. over: the names of the sources. O(sinks)."""
    node = nodes.by_key.get(key)
    if node is None:
        return NodeState()
    queries = sum(len(each.sink.query_ids) for each in sinks.values() if node in each.nodes)
    premature = node.premature / node.entered if node.entered else None
    return NodeState(
        queries,
        node.columns.count,
        node.rows,
        node.nbytes,
        node.visited,
        premature,
        nodes.id_of(key, node, over),
    )
