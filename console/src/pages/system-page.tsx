import { type ReactNode, useEffect, useState } from "react";
import { NameField } from "../app/name-field.tsx";
import { type Sample, type SystemState, useSystem } from "../data/queries.ts";
import { Failure } from "../ui/empty.tsx";
import { bytes, count, milliseconds } from "../ui/format.ts";
import { Plot } from "../ui/plot.tsx";
import { Section } from "../ui/section.tsx";
import { Age, shortSpan } from "../ui/time.tsx";

const SAMPLE_S = 5;
const KEPT = 900;

export default function SystemPage() {
  const { data: system, error } = useSystem();
  const queue = useQueueHistory(system);
  if (error && !system) return <Failure error={error} />;
  if (!system) return <p className="p-6 text-muted">Loading…</p>;
  const live = system.sessions.running + system.sessions.waiting + system.sessions.paused + system.sessions.stopping;
  const figures: [string, string, string][] = [
    ["Queue depth", count(system.queue_depth), "actions not processed"],
    ["Queue lag", milliseconds(system.queue_lag_ms), "age of the oldest of them"],
    ["Live sessions", count(live), `${count(system.sessions.running)} running`],
    ["Store", system.store, `up for ${shortSpan(system.process.uptime_s * 1000)}`],
    ["Memory", bytes(system.process.memory_bytes), `Node ${system.process.node}`],
  ];
  return (
    <div tabIndex={0} role="region" aria-label="System" className="min-h-0 flex-1 overflow-y-auto -outline-offset-2">
      <header className="flex h-[49px] shrink-0 items-center border-b border-line bg-surface px-4">
        <h1 className="text-[16px] font-semibold">System</h1>
      </header>
      <div className="mx-auto flex max-w-6xl flex-col gap-5 p-4">
        <dl className="grid grid-cols-2 gap-3 md:grid-cols-5">
          {figures.map(([name, value, hint]) => (
            <div key={name} className="panel px-3.5 py-2.5">
              <dt className="caption">{name}</dt>
              <dd>
                <span className="block text-[20px] font-semibold tabular-nums">{value}</span>
                <span className="text-[12px] text-muted">{hint}</span>
              </dd>
            </div>
          ))}
        </dl>
        <Throughput samples={system.samples} queue={queue} />
        {system.workers ? <Workers workers={system.workers} /> : <Runtimes runtimes={system.runtimes} />}
        {/* On a narrow screen the menu has no room for it. */}
        <div className="md:hidden">
          <NameField />
        </div>
      </div>
    </div>
  );
}

type QueuePoint = { at: number; depth: number; lag: number };

/** The queue as it was while this page was open. */
function useQueueHistory(system: SystemState | undefined): QueuePoint[] {
  const [points, setPoints] = useState<QueuePoint[]>([]);
  useEffect(() => {
    if (!system) return;
    const point = { at: Date.now() / 1000, depth: system.queue_depth, lag: system.queue_lag_ms };
    setPoints((before) => [...before, point].slice(-KEPT));
  }, [system]);
  return points;
}

function Throughput({ samples, queue }: { samples: Sample[]; queue: QueuePoint[] }) {
  const xs = samples.map(({ at }) => Date.parse(at) / 1000);
  const perSecond = (pick: (sample: Sample) => number) => samples.map((sample) => pick(sample) / SAMPLE_S);
  const times = queue.map(({ at }) => at);
  return (
    <Section title="Throughput of the last half hour">
      <div className="grid gap-3 md:grid-cols-2" data-testid="plots">
        <Plot title="Steps" unit="per second" isTime xs={xs} ys={perSecond(({ steps }) => steps)} />
        <Plot title="Tokens" unit="per second" isTime xs={xs} ys={perSecond(({ tokens }) => tokens)} color="good" />
        <Plot title="Step latency" unit="ms" isTime xs={xs} ys={samples.map(({ latency_ms }) => latency_ms)} />
        <Plot
          title="Failed steps"
          unit="per second"
          isTime
          xs={xs}
          ys={perSecond(({ errors }) => errors)}
          color="warn"
        />
        <Plot
          title="Queue depth, while this page is open"
          unit="actions"
          isTime
          xs={times}
          ys={queue.map(({ depth }) => depth)}
        />
        <Plot
          title="Queue lag, while this page is open"
          unit="ms"
          isTime
          xs={times}
          ys={queue.map(({ lag }) => lag)}
          color="warn"
        />
      </div>
    </Section>
  );
}

function Workers({ workers }: { workers: NonNullable<SystemState["workers"]> }) {
  return (
    <Table
      title="Processes that share the store"
      heads={["Process", "Work", "Sessions it owns", "Last heard of", "Started"]}
    >
      {workers.map((worker) => (
        <tr key={worker.name} className="border-b border-line last:border-0">
          <td className="px-3.5 py-2 font-mono text-[12px]">{worker.name}</td>
          <td className="px-3.5 py-2">{worker.takes_sessions ? "runs agents" : "serves"}</td>
          <td className="px-3.5 py-2 tabular-nums">{count(worker.owned_sessions)}</td>
          <td className="px-3.5 py-2 tabular-nums">
            {count(Math.round(worker.silent_ms))} ms ago
            {worker.blocked_ms > 0 && `, blocked by a step for ${count(Math.round(worker.blocked_ms / 1000))} s`}
          </td>
          <td className="px-3.5 py-2">
            <Age at={worker.started_at} /> ago
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Runtimes({ runtimes }: { runtimes: SystemState["runtimes"] }) {
  return (
    <Table title="Workers" heads={["Worker", "Process", "Running steps", "Waiting for a place", "Started"]}>
      {runtimes.map((runtime) => (
        <tr key={runtime.worker_id} className="border-b border-line last:border-0">
          <td className="px-3.5 py-2 font-mono text-[12px]">{runtime.worker_id}</td>
          <td className="px-3.5 py-2 tabular-nums">{runtime.pid}</td>
          <td className="px-3.5 py-2 tabular-nums">
            {count(runtime.running_steps)} of {count(runtime.max_running_steps)}
          </td>
          <td className="px-3.5 py-2 tabular-nums">{count(runtime.waiting_steps)}</td>
          <td className="px-3.5 py-2">
            <Age at={runtime.started_at} /> ago
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Table({ title, heads, children }: { title: string; heads: string[]; children: ReactNode }) {
  return (
    <Section title={title}>
      <div tabIndex={0} role="group" aria-label={title} className="panel overflow-x-auto">
        <table className="w-full text-left">
          <thead>
            <tr className="border-b border-line text-muted">
              {heads.map((name) => (
                <th key={name} scope="col" className="px-3.5 py-2 font-medium whitespace-nowrap">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>{children}</tbody>
        </table>
      </div>
    </Section>
  );
}
