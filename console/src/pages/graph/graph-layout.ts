import type { GraphEdge, StepGraph } from "../../data/step-graph.ts";

export const NODE_WIDTH = 156;
export const NODE_HEIGHT = 46;
/** Between layers, with room for the counts on the arrows: more where they stand side by side. */
const GAP_ACROSS = 88;
const GAP_DOWN = 64;
const SIBLING_GAP = 18;
const MARGIN = 10;
/** Room beside a node for an arrow to itself, with its count. */
const LOOP_ROOM = 34;
/** Room behind the last layer for arrows within it. */
const BEND_ROOM = 40;
/** Distance between two arrows that go around the nodes. */
const LANE = 18;
/** Layers run from left to right up to this width. */
const FITS = 680;
/** Room for the count on an arrow. */
const LABEL = { width: 26, height: 13 };

type Point = { x: number; y: number };
type PlacedEdge = GraphEdge & { path: string; label: Point };
export type Layout = {
  width: number;
  height: number;
  places: ReadonlyMap<string, Point>;
  edges: PlacedEdge[];
};

/** Layout coordinates: `along` runs from layer to layer, `beside` within one. */
type Spot = { along: number; beside: number };
type Plane = {
  /** Layers run from left to right rather than from top to bottom. */
  isAcross: boolean;
  node: Spot;
  /** Between two layers. */
  gap: number;
  spots: Map<string, Spot>;
  layerOf: Map<string, number>;
  size: Spot;
};
/** The side of a node that faces the next layer, or the one before. */
type Face = "front" | "back";
type End = { edge: GraphEdge; name: string; other: string; face: Face };

/**
 * Puts nodes into layers by their distance from the first. Layers run from left to right where that fits, or takes less width. The arrows at a
 * side of a node are spread over it in the order of where they lead, and each count is put where it covers nothing.
 */
export function layOut({ nodes, edges }: StepGraph): Layout {
  const plane = planeOf(
    nodes.map(({ name }) => name),
    edges,
  );
  const point = ({ along, beside }: Spot): Point =>
    plane.isAcross ? { x: along, y: beside } : { x: beside, y: along };
  const ports = portsOf(edges, plane);
  const boxes = [...plane.spots.values()].map(
    (spot): Box => ({ ...point(spot), width: NODE_WIDTH, height: NODE_HEIGHT }),
  );
  const degrees = new Map<string, number>();
  for (const { from, to } of edges) for (const name of [from, to]) degrees.set(name, (degrees.get(name) ?? 0) + 1);
  let lanes = 0;
  const placed = edges.map((edge): PlacedEdge => {
    const span = spanOf(edge, plane);
    const lane = Math.abs(span) > 1 ? ++lanes : 0;
    const curves = routeOf(edge, lane, plane, ports).map((spot) => point(spot));
    const crowd = (degrees.get(edge.to) ?? 0) - (degrees.get(edge.from) ?? 0);
    const label = freeLabel(curves, Math.sign(crowd), boxes);
    boxes.push({ x: label.x - LABEL.width / 2, y: label.y - LABEL.height / 2, ...LABEL });
    return { ...edge, path: pathOf(curves), label };
  });
  const { x: width, y: height } = point({
    along: plane.size.along,
    beside: plane.size.beside + (lanes > 0 ? (lanes + 1) * LANE : 0),
  });
  return { width, height, places: new Map([...plane.spots].map(([name, spot]) => [name, point(spot)])), edges: placed };
}

function planeOf(names: string[], edges: readonly GraphEdge[]): Plane {
  const layers = layersOf(names, edges);
  const loops = new Set(edges.filter(({ from, to }) => from === to).map(({ from }) => from));
  const breadth = Math.max(...layers.map((layer) => layer.length));
  const widthOf = (boxes: number, gap: number) => boxes * (NODE_WIDTH + gap) - gap;
  const isAcross = widthOf(layers.length, GAP_ACROSS) <= Math.max(FITS, widthOf(breadth, SIBLING_GAP));
  const node = isAcross ? { along: NODE_WIDTH, beside: NODE_HEIGHT } : { along: NODE_HEIGHT, beside: NODE_WIDTH };
  const gap = isAcross ? GAP_ACROSS : GAP_DOWN;
  const roomOf = (name: string) => node.beside + (loops.has(name) ? LOOP_ROOM : 0);
  const lengths = layers.map((layer) => layer.reduce((sum, name) => sum + roomOf(name) + SIBLING_GAP, -SIBLING_GAP));
  const longest = Math.max(...lengths);
  const spots = new Map<string, Spot>();
  const layerOf = new Map<string, number>();
  for (const [depth, layer] of layers.entries()) {
    let beside = MARGIN + (longest - (lengths[depth] ?? 0)) / 2;
    for (const name of layer) {
      spots.set(name, { along: MARGIN + depth * (node.along + gap), beside });
      layerOf.set(name, depth);
      beside += roomOf(name) + SIBLING_GAP;
    }
  }
  const bends = edges.some(
    ({ from, to }) => from !== to && layerOf.get(from) === layers.length - 1 && layerOf.get(to) === layers.length - 1,
  );
  const length = 2 * MARGIN + layers.length * (node.along + gap) - gap + (bends ? BEND_ROOM : 0);
  return { isAcross, node, gap, spots, layerOf, size: { along: length, beside: 2 * MARGIN + longest } };
}

function layersOf(names: string[], edges: readonly GraphEdge[]): string[][] {
  const depths = new Map<string, number>();
  for (const start of names) {
    if (depths.has(start)) continue;
    const waiting = [start];
    depths.set(start, 0);
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift())
      for (const { from, to } of edges) {
        if (from !== name || depths.has(to)) continue;
        depths.set(to, (depths.get(name) ?? 0) + 1);
        waiting.push(to);
      }
  }
  const layers: string[][] = [];
  for (const name of names) (layers[depths.get(name) ?? 0] ??= []).push(name);
  return layers;
}

const NOWHERE: Spot = { along: 0, beside: 0 };
const spotOf = (name: string, { spots }: Plane): Spot => spots.get(name) ?? NOWHERE;
const spanOf = ({ from, to }: GraphEdge, { layerOf }: Plane): number =>
  (layerOf.get(to) ?? 0) - (layerOf.get(from) ?? 0);

/** Arrows leave toward the layer they lead to; those within a layer use the front. */
function endsOf(edge: GraphEdge, plane: Plane): [End, End] {
  const span = spanOf(edge, plane);
  return [
    { edge, name: edge.from, other: edge.to, face: span < 0 ? "back" : "front" },
    { edge, name: edge.to, other: edge.from, face: span > 0 ? "back" : "front" },
  ];
}

const portKey = (edge: GraphEdge, name: string): string => JSON.stringify([edge.from, edge.to, name]);

/** Where each arrow starts and ends. */
function portsOf(edges: readonly GraphEdge[], plane: Plane): Map<string, Spot> {
  const ends = edges.filter(({ from, to }) => from !== to).flatMap((edge) => endsOf(edge, plane));
  const ports = new Map<string, Spot>();
  const most = plane.isAcross ? 14 : 30;
  for (const group of Map.groupBy(ends, ({ name, face }) => `${face} ${name}`).values()) {
    const places = group.toSorted((one, other) => orderOf(one, plane) - orderOf(other, plane));
    const gap = Math.min(most, (plane.node.beside - 12) / places.length);
    for (const [index, { edge, name, face }] of places.entries()) {
      const { along, beside } = spotOf(name, plane);
      ports.set(portKey(edge, name), {
        along: face === "front" ? along + plane.node.along : along,
        beside: beside + plane.node.beside / 2 + (index - (places.length - 1) / 2) * gap,
      });
    }
  }
  return ports;
}

/** Arrows that go around come last. Of two arrows between the same nodes, the one that leads on comes first at both. */
function orderOf({ edge, other }: End, plane: Plane): number {
  const span = spanOf(edge, plane);
  if (Math.abs(span) > 1) return Number.MAX_SAFE_INTEGER;
  return 2 * spotOf(other, plane).beside + (span > 0 ? 0 : 1);
}

/** A start, then two control points and an end for each curve. */
function routeOf(edge: GraphEdge, lane: number, plane: Plane, ports: Map<string, Spot>): Spot[] {
  const { from, to } = edge;
  if (from === to) return loopOf(spotOf(from, plane), plane);
  const start = ports.get(portKey(edge, from)) ?? NOWHERE;
  const end = ports.get(portKey(edge, to)) ?? NOWHERE;
  const span = spanOf(edge, plane);
  if (span === 0) {
    const bend = Math.max(start.along, end.along) + BEND_ROOM;
    return [start, { along: bend, beside: start.beside }, { along: bend, beside: end.beside }, end];
  }
  if (lane === 0) {
    const middle = (start.along + end.along) / 2;
    return [start, { along: middle, beside: start.beside }, { along: middle, beside: end.beside }, end];
  }
  // Down in the gap behind the start, along the lane, and up in the gap before the end.
  const ahead = Math.sign(span) * (plane.gap / 2);
  const below = plane.size.beside + lane * LANE - MARGIN;
  const [out, back] = [start.along + ahead, end.along - ahead];
  return [
    start,
    { along: out, beside: start.beside },
    { along: out, beside: below },
    { along: out + ahead, beside: below },
    { along: out + ahead, beside: below },
    { along: back - ahead, beside: below },
    { along: back - ahead, beside: below },
    { along: back, beside: below },
    { along: back, beside: end.beside },
    end,
  ];
}

/** An arrow to itself, on the side that faces the next sibling. */
function loopOf({ along, beside }: Spot, { node, isAcross }: Plane): Spot[] {
  const middle = along + node.along / 2;
  const side = beside + node.beside;
  const [half, spread] = isAcross ? [18, 34] : [10, 22];
  return [
    { along: middle + half, beside: side },
    { along: middle + spread, beside: side + LOOP_ROOM },
    { along: middle - spread, beside: side + LOOP_ROOM },
    { along: middle - half, beside: side },
  ];
}

type Box = Point & { width: number; height: number };

const overlaps = (one: Box, other: Box): boolean =>
  one.x < other.x + other.width &&
  other.x < one.x + one.width &&
  one.y < other.y + other.height &&
  other.y < one.y + one.height;

/** Shares of the way at which a count may stand, the best first: near the end that is less crowded. */
const SHARES: Readonly<Record<number, readonly number[]>> = {
  [-1]: [0.72, 0.6, 0.82, 0.5, 0.4, 0.3],
  0: [0.5, 0.62, 0.38, 0.74, 0.26],
  1: [0.28, 0.4, 0.18, 0.5, 0.6, 0.7],
};

/** `crowd`: 1 if more arrows meet at the end than at the start, -1 if fewer. */
function freeLabel(points: Point[], crowd: number, taken: readonly Box[]): Point {
  const middle = 3 * Math.floor((points.length - 1) / 6);
  const curve = points.slice(middle, middle + 4);
  const spots = (SHARES[crowd] ?? []).map((share) => onCurve(curve, share));
  const isFree = ({ x, y }: Point): boolean => {
    const box = { x: x - LABEL.width / 2, y: y - LABEL.height / 2, ...LABEL };
    return !taken.some((other) => overlaps(box, other));
  };
  return spots.find(isFree) ?? onCurve(curve, 0.5);
}

function onCurve([first, control, other, last]: Point[], share: number): Point {
  const mix = (of: (point: Point) => number): number =>
    first && control && other && last
      ? (1 - share) ** 3 * of(first) +
        3 * (1 - share) ** 2 * share * of(control) +
        3 * (1 - share) * share ** 2 * of(other) +
        share ** 3 * of(last)
      : 0;
  return { x: mix(({ x }) => x), y: mix(({ y }) => y) };
}

function pathOf([start, ...rest]: Point[]): string {
  const pair = ({ x, y }: Point): string => `${Math.round(x)} ${Math.round(y)}`;
  return start ? `M${pair(start)} C${rest.map(pair).join(" ")}` : "";
}
