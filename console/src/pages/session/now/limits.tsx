import type { Session } from "../../../data/queries.ts";
import { count, dollars } from "../../../ui/format.ts";
import { Section } from "../../../ui/section.tsx";
import { LimitBar, TimeBar } from "./limit-bar.tsx";

/** What the session has used of its limits. A fork counts only its own steps. */
export function Limits({ session }: { session: Session }) {
  const { options, iteration, parent_iteration, tokens_used, cost_usd, created_at, ended_at } = session;
  const steps = iteration - (parent_iteration ?? -1);
  const { max_steps, max_runtime_s, max_tokens, max_cost_usd } = options;
  return (
    <Section title="Usage">
      <div className="panel grid gap-x-6 gap-y-3 px-3.5 py-3 sm:grid-cols-2">
        <LimitBar label="Steps" used={count(steps)} {...limit(steps, max_steps, count)} />
        <TimeBar label="Time" since={created_at} until={ended_at} seconds={max_runtime_s} />
        <LimitBar label="Tokens" used={count(tokens_used)} {...limit(tokens_used, max_tokens, count)} />
        <LimitBar label="Cost" used={dollars(cost_usd)} {...limit(cost_usd, max_cost_usd, dollars)} />
      </div>
    </Section>
  );
}

const limit = (used: number, most: number | undefined, words: (value: number) => string) =>
  most === undefined ? { most: null, share: 0 } : { most: words(most), share: used / most };
