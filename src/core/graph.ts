// The dependency graph: whether tickets block each other in a circle, and in which order.

type Graph = ReadonlyMap<string, readonly string[]>;
type Frame = { id: string; edges: string[]; next: number };

function frame(graph: Graph, id: string): Frame {
  return { id, edges: [...new Set(graph.get(id) ?? [])].sort(), next: 0 };
}

/** Walks everything reachable from `start`; the chain from a repeated id back to itself, or null. */
function cycleFrom(graph: Graph, start: string, done: Set<string>): string[] | null {
  const path = [frame(graph, start)];
  const onPath = new Set([start]);
  for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
    const edge = top.edges[top.next];
    top.next += 1;
    if (edge === undefined) {
      done.add(top.id);
      onPath.delete(top.id);
      path.pop();
    } else if (onPath.has(edge)) {
      const ids = path.map((entry) => entry.id);
      return [...ids.slice(ids.indexOf(edge)), edge];
    } else if (!done.has(edge)) {
      path.push(frame(graph, edge));
      onPath.add(edge);
    }
  }
  return null;
}

/** The first dependency cycle, depth first over sorted ids: `["T1", "T2", "T1"]`; null when there is none. */
export function findCycle(graph: Graph): string[] | null {
  const done = new Set<string>();
  for (const id of [...graph.keys()].sort()) {
    const chain = done.has(id) ? null : cycleFrom(graph, id, done);
    if (chain !== null) return chain;
  }
  return null;
}
