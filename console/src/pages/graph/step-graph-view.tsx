import { useEffect, useId, useRef } from "react";
import type { GraphNode, StepGraph } from "../../data/step-graph.ts";
import { milliseconds, shortCount } from "../../ui/format.ts";
import { layOut, NODE_HEIGHT, NODE_WIDTH } from "./graph-layout.ts";

type StepGraphViewProps = {
  graph: StepGraph;
  /** Whether a step runs now. */
  isRunning: boolean;
  onIteration: (iteration: number) => void;
};

const LONGEST_NAME = 18;

/** The kinds of steps as boxes, with how often one followed another. A box links to its newest step. */
export function StepGraphView({ graph, isRunning, onIteration }: StepGraphViewProps) {
  const { width, height, places, edges } = layOut(graph);
  const arrow = useId();
  const box = useRef<HTMLDivElement>(null);
  const current = places.get(graph.current);
  const middle = current ? (current.x + NODE_WIDTH / 2) / width : 0;
  // A graph that is too wide opens on the current node.
  useEffect(() => {
    const element = box.current;
    if (element) element.scrollLeft = middle * element.scrollWidth - element.clientWidth / 2;
  }, [middle]);
  const most = Math.max(1, ...edges.map((edge) => edge.count));
  return (
    <div
      ref={box}
      className="overflow-x-auto"
      tabIndex={0}
      role="group"
      aria-label="Graph of steps"
      data-testid="step-graph"
    >
      <svg
        viewBox={`0 0 ${width} ${height}`}
        className="mx-auto block w-full"
        // Shrinks down to three quarters, then scrolls.
        style={{ maxWidth: width, minWidth: width * 0.75 }}
      >
        <defs>
          <marker
            id={arrow}
            viewBox="0 0 8 8"
            refX="7"
            refY="4"
            markerWidth="8"
            markerHeight="8"
            markerUnits="userSpaceOnUse"
            orient="auto"
          >
            <path d="M0 0L8 4L0 8z" className="fill-muted" />
          </marker>
        </defs>
        {edges.map(({ from, to, count: times, path }) => (
          <path
            key={`${from} ${to}`}
            d={path}
            fill="none"
            className="stroke-muted"
            strokeWidth={1 + 1.5 * Math.sqrt(times / most)}
            strokeDasharray={times === 0 ? "4 4" : undefined}
            strokeOpacity={0.65}
            markerEnd={`url(#${arrow})`}
          />
        ))}
        {edges.map(({ from, to, count: times, label }) => (
          <text
            key={`${from} ${to}`}
            x={label.x}
            y={label.y + 4}
            textAnchor="middle"
            aria-hidden
            className="fill-ink stroke-canvas text-[11px] tabular-nums [paint-order:stroke]"
            strokeWidth={4}
          >
            {times > 0 && shortCount(times)}
          </text>
        ))}
        {graph.nodes.map((node) => (
          <Box
            key={node.name}
            node={node}
            place={places.get(node.name) ?? { x: 0, y: 0 }}
            isCurrent={node.name === graph.current}
            isRunning={isRunning}
            onIteration={onIteration}
          />
        ))}
      </svg>
    </div>
  );
}

type BoxProps = {
  node: GraphNode;
  place: { x: number; y: number };
  isCurrent: boolean;
  isRunning: boolean;
  onIteration: (iteration: number) => void;
};

function Box({ node, place, isCurrent, isRunning, onIteration }: BoxProps) {
  const { name, iteration } = node;
  const label = name.length > LONGEST_NAME ? `${name.slice(0, 8)}…${name.slice(9 - LONGEST_NAME)}` : name;
  const figures =
    node.count === 0 ? "next" : `${shortCount(node.count)}× · avg ${milliseconds(node.latency_ms / node.count)}`;
  const failures = node.errors > 0 ? ` · ${shortCount(node.errors)} failed` : "";
  const open = () => iteration !== null && onIteration(iteration);
  return (
    <g
      transform={`translate(${place.x} ${place.y})`}
      role="button"
      tabIndex={0}
      aria-label={`${label} ${figures}${failures}${isCurrent ? ", current" : ""}`}
      aria-disabled={iteration === null}
      data-node={name}
      data-current={isCurrent}
      className="cursor-pointer outline-offset-2"
      onClick={open}
      onKeyDown={(event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        open();
      }}
    >
      {label !== name && <title>{name}</title>}
      <rect
        width={NODE_WIDTH}
        height={NODE_HEIGHT}
        rx={8}
        className={isCurrent ? "fill-accent-soft stroke-accent" : "fill-surface stroke-line"}
        strokeWidth={isCurrent ? 2 : 1}
      />
      {isCurrent && (
        <circle
          cx={NODE_WIDTH - 12}
          cy={NODE_HEIGHT - 14}
          r={4}
          className={`fill-accent ${isRunning ? "pulse" : ""}`}
        />
      )}
      <text x={11} y={19} className="fill-ink font-mono text-[12px] font-medium">
        {/* The space separates the words for screen readers. */}
        {`${label} `}
      </text>
      <text x={11} y={36} className="fill-muted text-[11px] tabular-nums">
        {figures}
        {failures !== "" && <tspan className="fill-bad">{failures}</tspan>}
      </text>
    </g>
  );
}
