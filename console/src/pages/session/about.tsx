import type { ReactNode } from "react";
import type { Session } from "../../data/queries.ts";
import { CopyId } from "../../ui/copy.tsx";
import { Json } from "../../ui/json.tsx";
import { Section } from "../../ui/section.tsx";
import { Time } from "../../ui/time.tsx";

/** A session's facts, parameters, options and state. */
export function About({ session }: { session: Session }) {
  const facts: [string, ReactNode][] = [
    ["Agent", session.agent_id],
    ["Session", <CopyId key="session" id={session.session_id} label="session id" />],
    ["Moniker", session.moniker],
    ["Next step", session.next_step_token],
    ["Created", <Time key="created" at={session.created_at} withDate />],
    ["Updated", <Time key="updated" at={session.updated_at} withDate />],
    ["Ended", session.ended_at ? <Time key="ended" at={session.ended_at} withDate /> : "not yet"],
  ];
  if (session.wake_at !== null) facts.push(["Wakes", <Time key="wakes" at={session.wake_at} withDate />]);
  return (
    <div className="flex flex-col gap-4 p-4">
      <dl className="grid grid-cols-[90px_1fr] gap-y-1">
        {facts.map(([name, value]) => (
          <div key={name} className="contents">
            <dt className="text-muted">{name}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
      <Section title="Parameters">
        <Json value={session.params} label="Parameters" />
      </Section>
      <Section title="Options">
        <Json value={session.options} label="Options" />
      </Section>
      <Section title="State now">
        <Json value={session.context} label="State now" />
      </Section>
    </div>
  );
}
