import type { StepSpan } from "./spans.ts";

/** Steps of one kind: tokens that differ only in numbers (`think/3`, `think/4`). */
export type GraphNode = {
  name: string;
  /** Committed steps. */
  count: number;
  /** Attempts that failed. */
  errors: number;
  latency_ms: number;
  /** The newest one; null if none has run yet. */
  iteration: number | null;
};
export type GraphEdge = { from: string; to: string; count: number };
export type StepGraph = {
  nodes: GraphNode[];
  edges: GraphEdge[];
  /** The node that runs now or comes next; after the end, the last one. */
  current: string;
};

/** Kinds drawn separately; the rarest others are merged into one. */
const MOST_KINDS = 24;
const OTHERS = "other steps";

const NUMBER = /^\d+(?:\.\d+)*$/;
const ID = /^(?:[0-9A-HJKMNP-TV-Z]{26}|[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{24,})$/i;

/** A token without its numbers and ids: `act/3.1/files/read` is `act/files/read`. */
function kindOfToken(token: string): string {
  const parts = token.split("/").filter((part) => part !== "" && !NUMBER.test(part) && !ID.test(part));
  return parts.join("/") || "step";
}

type Standing = { next_step_token: string; isOver: boolean };

/** Counts how often each kind of step followed another. */
export function stepGraph(steps: readonly StepSpan[], { next_step_token, isOver }: Standing): StepGraph {
  const committed = steps.filter(({ status }) => status === "ok");
  const last = committed.at(-1);
  const shown = namesShown(committed, isOver ? null : kindOfToken(next_step_token));
  const nameOf = (token: string): string => {
    const kind = kindOfToken(token);
    return shown.has(kind) ? kind : OTHERS;
  };
  const nodes = new Map<string, GraphNode>();
  const edges = new Map<string, GraphEdge>();
  const nodeAt = (token: string): GraphNode => {
    const name = nameOf(token);
    const node = nodes.get(name) ?? { name, count: 0, errors: 0, latency_ms: 0, iteration: null };
    nodes.set(name, node);
    return node;
  };
  for (const [index, step] of committed.entries()) {
    const node = nodeAt(step.step_token);
    node.count += 1;
    node.latency_ms += step.latency_ms;
    node.iteration = step.iteration;
    const before = committed[index - 1];
    if (before?.iteration === step.iteration - 1) addTo(edges, nameOf(before.step_token), node.name);
  }
  for (const step of steps) if (step.status === "error") nodeAt(step.step_token).errors += 1;
  const current = isOver && last ? nodeAt(last.step_token) : nodeAt(next_step_token);
  // The next node gets an arrow before it has run.
  if (!isOver && last && current.count === 0)
    edges.set(" next", { from: nameOf(last.step_token), to: current.name, count: 0 });
  return { nodes: [...nodes.values()], edges: [...edges.values()], current: current.name };
}

function namesShown(steps: readonly StepSpan[], next: string | null): Set<string> {
  const counts = new Map<string, number>();
  for (const { step_token } of steps)
    counts.set(kindOfToken(step_token), (counts.get(kindOfToken(step_token)) ?? 0) + 1);
  const frequent = [...counts].sort((one, other) => other[1] - one[1]).slice(0, MOST_KINDS);
  return new Set([...frequent.map(([kind]) => kind), ...(next === null ? [] : [next])]);
}

function addTo(edges: Map<string, GraphEdge>, from: string, to: string): void {
  const key = JSON.stringify([from, to]);
  const edge = edges.get(key) ?? { from, to, count: 0 };
  edge.count += 1;
  edges.set(key, edge);
}
