import { atMost, type Figure } from "../figure.ts";
import { summarize } from "../stats.ts";
import type { Pair, RequestLoad } from "./request-load.ts";

export function pairFigures({ kind, count, everstep, bare, processor, settled }: Pair): Figure[] {
  const name = `${kind.name}, ${count} connection${count === 1 ? "" : "s"}`;
  const each = (processor * 1_000) / everstep.requests;
  return [
    ...loadFigures(name, "", everstep),
    // The bench's own requests would be a large part of a short block.
    ...(count > 1
      ? [{ figure: `${name}: server's processor time for each`, measured: each, unit: "ms", bar: null }]
      : []),
    ...(kind.needs === "a commit and its handling" ? settledFigures(name, settled) : []),
    ...loadFigures(name, " of a bare route", bare),
  ];
}

function loadFigures(name: string, whose: string, load: RequestLoad): Figure[] {
  const { p50, p99 } = load.latency();
  return [
    { figure: `${name}: requests${whose}`, measured: load.per_second, unit: "/s", bar: null },
    { figure: `${name}: p50${whose}`, measured: p50, unit: "ms", bar: null },
    { figure: `${name}: p99${whose}`, measured: p99, unit: "ms", bar: null },
  ];
}

function settledFigures(name: string, settled: readonly number[]): Figure[] {
  const what = "from a block's last answer to its last action handled, p50";
  return [{ figure: `${name}: ${what}`, measured: summarize(settled).p50, unit: "ms", bar: null }];
}

/** A submitted action needs the route and one commit; the rest is our overhead. */
export function commitFigures(pairs: readonly Pair[], commits: readonly number[]): Figure[] {
  const { p50, p99 } = summarize(commits);
  const figures: Figure[] = [
    { figure: "lone commit of an action, p50", measured: p50, unit: "ms", bar: null },
    { figure: "lone commit of an action, p99", measured: p99, unit: "ms", bar: null },
  ];
  for (const { kind, count, everstep, bare } of pairs) {
    if (count !== 1 || kind.needs === "nothing") continue;
    figures.push({
      figure: `${kind.name}, 1 connection: p50 / (bare route + lone commit)`,
      measured: everstep.latency().p50 / (bare.latency().p50 + p50),
      unit: "x",
      bar: kind.needs === "a commit and its handling" ? atMost(3) : null,
    });
  }
  return figures;
}
