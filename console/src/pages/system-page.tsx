import { useEffect, useState } from "react";
import { type Sample, type SystemState, useArchives, useSystem } from "../data/queries.ts";
import { Failure } from "../ui/empty.tsx";
import { bytes, count, milliseconds, plural } from "../ui/format.ts";
import { Page } from "../ui/page.tsx";
import { Plot } from "../ui/plot.tsx";
import { Section } from "../ui/section.tsx";
import { Amount, Cell, type Head, Row, Table } from "../ui/table.tsx";
import { Age, shortSpan, Time } from "../ui/time.tsx";

const SAMPLE_S = 5;
const KEPT = 900;

export default function SystemPage() {
  const { data: system, error } = useSystem();
  const queue = useQueueHistory(system);
  if (error && !system) return <Failure error={error} />;
  if (!system) return <p className="p-6 text-muted">Loading…</p>;
  const live = system.sessions.running + system.sessions.waiting + system.sessions.paused + system.sessions.stopping;
  const figures: [string, string, string][] = [
    ["Queue depth", count(system.queue_depth), "unprocessed actions"],
    ["Queue lag", milliseconds(system.queue_lag_ms), "age of the oldest"],
    ["Live sessions", count(live), `${count(system.sessions.running)} running`],
    ["Store", system.store, `up for ${shortSpan(system.process.uptime_s * 1000)}`],
    ["Memory", bytes(system.process.memory_bytes), `Node ${system.process.node}`],
  ];
  return (
    <Page title="System">
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
        <Archives />
      </div>
    </Page>
  );
}

type QueuePoint = { at: number; depth: number; lag: number };

/** The queue's history while this page is open. */
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
    <Section title="Processes that share the store">
      <Table
        label="Processes that share the store"
        heads={["Process", "Work", { name: "Owned sessions", isAmount: true }, "Last heartbeat", "Started"]}
      >
        {workers.map((worker) => (
          <Row key={worker.name}>
            <Cell className="font-mono text-[12px]">{worker.name}</Cell>
            <Cell>{worker.takes_sessions ? "runs agents" : "serves only"}</Cell>
            <Amount>{count(worker.owned_sessions)}</Amount>
            <Cell className="tabular-nums">
              {count(Math.round(worker.silent_ms))} ms ago
              {worker.blocked_ms > 0 && `, blocked by a step for ${count(Math.round(worker.blocked_ms / 1000))} s`}
            </Cell>
            <Cell>
              <Age at={worker.started_at} /> ago
            </Cell>
          </Row>
        ))}
      </Table>
    </Section>
  );
}

function Runtimes({ runtimes }: { runtimes: SystemState["runtimes"] }) {
  return (
    <Section title="Workers">
      <Table
        label="Workers"
        heads={["Worker", "Process", "Running steps", { name: "Waiting for a slot", isAmount: true }, "Started"]}
      >
        {runtimes.map((runtime) => (
          <Row key={runtime.worker_id}>
            <Cell className="font-mono text-[12px]">{runtime.worker_id}</Cell>
            <Cell className="tabular-nums">{runtime.pid}</Cell>
            <Cell className="tabular-nums">
              {count(runtime.running_steps)} of {count(runtime.max_running_steps)}
            </Cell>
            <Amount>{count(runtime.waiting_steps)}</Amount>
            <Cell>
              <Age at={runtime.started_at} /> ago
            </Cell>
          </Row>
        ))}
      </Table>
    </Section>
  );
}

const ARCHIVE_HEADS: Head[] = [
  "Location",
  "State",
  { name: "Sessions", isAmount: true },
  { name: "Steps", isAmount: true },
  { name: "Messages", isAmount: true },
  { name: "Size", isAmount: true },
  "Ended until",
];

/** The volumes that hold the history of sessions that ended long ago. */
function Archives() {
  const { data, error } = useArchives();
  if (error) return <Failure error={error} />;
  if (!data) return null;
  const { volumes, job } = data;
  return (
    <Section title="Archives">
      {volumes.length === 0 ? (
        <p className="text-muted">
          Nothing is archived. <code className="font-mono text-[12px]">everstep archive --older-than 30d</code> moves
          the history of sessions that ended into files.
        </p>
      ) : (
        <Table label="Archives" heads={ARCHIVE_HEADS}>
          {volumes.map((volume) => (
            <Row key={volume.volume_id} data-testid="volume">
              <Cell className="wrap-anywhere">
                {volume.location} <span className="block font-mono text-[11px] text-muted">{volume.volume_id}</span>
              </Cell>
              <Cell>{volume.state === "dropped" ? "deleted" : volume.state}</Cell>
              <Amount>{count(volume.sessions)}</Amount>
              <Amount>{count(volume.steps)}</Amount>
              <Amount>{count(volume.messages)}</Amount>
              <Amount className="whitespace-nowrap">{bytes(volume.bytes)}</Amount>
              <Cell className="whitespace-nowrap">
                {volume.newest_ended_at === null ? "–" : <Time at={volume.newest_ended_at} withDate />}
              </Cell>
            </Row>
          ))}
        </Table>
      )}
      {job && (
        <p className="mt-1.5 text-[12px] text-muted" role="status">
          {JOB_WORDS[job.operation]} {plural(job.sessions, "session")}
          {job.state === "running" ? " so far" : ""}
          {job.state === "failed" ? `, then it failed: ${job.error}` : ""}, started <Age at={job.started_at} /> ago.
        </p>
      )}
    </Section>
  );
}

const JOB_WORDS = { archive: "The last job archived", restore: "The last job restored", drop: "The last job deleted" };
