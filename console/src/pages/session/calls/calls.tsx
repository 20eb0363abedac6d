import { type ReactNode, useState } from "react";
import type { StepCall } from "../../../../../src/domain/step.ts";
import { Code } from "../../../ui/code.tsx";
import { CopyButton } from "../../../ui/copy.tsx";
import { FoldButton } from "../../../ui/fold-button.tsx";
import { count, dollars, milliseconds, plural } from "../../../ui/format.ts";
import { passages } from "../../../ui/highlight.ts";
import { JsonTree } from "../../../ui/json-tree.tsx";
import { Section } from "../../../ui/section.tsx";
import { type Message, parsed, promptOf, replyOf } from "./call-parts.ts";

/** With more calls than this, only failed ones are expanded at first. */
const FEW = 2;

/** The model and tool calls of a step. */
export function Calls({ calls }: { calls: readonly StepCall[] }) {
  if (calls.length === 0) return null;
  return (
    <Section title={calls.length === 1 ? "Call" : `${calls.length} calls`}>
      <ol className="flex flex-col gap-2">
        {calls.map((call, index) => (
          // Calls have no ids and never move.
          // biome-ignore lint/suspicious/noArrayIndexKey: see above
          <li key={index}>
            <Call call={call} isOpenFirst={calls.length <= FEW || call.error !== undefined} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

function Call({ call, isOpenFirst }: { call: StepCall; isOpenFirst: boolean }) {
  const [isOpen, setOpen] = useState(isOpenFirst);
  const isModel = call.kind === "model";
  return (
    <div className="panel overflow-hidden" data-testid="call" data-kind={call.kind}>
      <FoldButton
        isOpen={isOpen}
        onOpen={setOpen}
        className="flex w-full flex-wrap items-baseline gap-x-2 gap-y-0.5 px-3 py-2 text-left -outline-offset-2 hover:bg-sunken"
      >
        <span
          className={`rounded px-1.5 text-[11px] font-semibold ${isModel ? "bg-good-soft text-good" : "bg-warn-soft text-warn"}`}
        >
          {isModel ? "Model" : "Tool"}
        </span>
        <span className="font-mono wrap-anywhere">{call.name}</span>
        {call.error !== undefined && <span className="font-medium text-bad">failed</span>}
        <span className="ml-auto flex flex-wrap gap-x-2.5 text-[12px] text-muted tabular-nums">
          {tokensOf(call).map((words) => (
            <span key={words}>{words}</span>
          ))}
          {call.cost_usd !== undefined && <span>{dollars(call.cost_usd)}</span>}
          <span>{milliseconds(call.latency_ms)}</span>
        </span>
      </FoldButton>
      {isOpen && <CallBody call={call} />}
    </div>
  );
}

function tokensOf({ tokens, input_tokens, output_tokens, cached_tokens = 0, estimated }: StepCall): string[] {
  const about = estimated ? "about " : "";
  if (input_tokens === undefined || output_tokens === undefined)
    return tokens === undefined ? [] : [`${about}${plural(tokens, "token")}`];
  const cached = cached_tokens > 0 ? ` (${count(cached_tokens)} cached)` : "";
  return [`${about}${count(input_tokens)} in${cached}`, `${count(output_tokens)} out`];
}

function CallBody({ call }: { call: StepCall }) {
  const prompt = promptOf(call);
  const reply = replyOf(call);
  const isModel = call.kind === "model";
  if (call.input === null && call.output === null && call.error === undefined)
    return (
      <p className="border-t border-line px-3 py-2 text-muted">
        Inputs and outputs are not kept (EVERSTEP_KEEP_CALLS).
      </p>
    );
  return (
    <div className="flex flex-col gap-3 border-t border-line p-3">
      {call.error !== undefined && (
        <p className="rounded-md bg-bad-soft px-3 py-2 text-bad wrap-anywhere" data-testid="call-error">
          {call.error}
        </p>
      )}
      {prompt ? (
        <Part title="Prompt" value={call.input}>
          {prompt.earlier > 0 && (
            <p className="text-[12px] text-muted">
              {plural(prompt.earlier, "earlier message")} were sent too; see the steps before.
            </p>
          )}
          {prompt.messages.map((message, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: messages of a call never change their places
            <MessageView key={index} message={message} />
          ))}
        </Part>
      ) : (
        <JsonTree value={parsed(call.input)} label={isModel ? "Prompt" : "Arguments"} />
      )}
      {reply ? (
        <Part title="Reply" value={call.output}>
          <MessageView message={reply} />
        </Part>
      ) : (
        call.output !== null && <JsonTree value={parsed(call.output)} label={isModel ? "Reply" : "Output"} />
      )}
    </div>
  );
}

/** A part of a call, formatted or as JSON. */
function Part({ title, value, children }: { title: string; value: unknown; children: ReactNode }) {
  const [isJson, setJson] = useState(false);
  return (
    <section aria-label={title}>
      <div className="mb-1 flex items-baseline gap-3">
        <h3 className="caption mr-auto">{title}</h3>
        <button
          type="button"
          aria-pressed={isJson}
          aria-label={`${title} as JSON`}
          className="rounded px-1.5 text-[12px] text-muted hover:bg-line hover:text-ink aria-pressed:text-accent"
          onClick={() => setJson(!isJson)}
        >
          JSON
        </button>
        {!isJson && <CopyButton text={() => JSON.stringify(value, null, 2)} label={title} />}
      </div>
      {isJson ? <JsonTree value={value} label={title} /> : <div className="flex flex-col gap-2">{children}</div>}
    </section>
  );
}

const LONGEST = 1500;

function MessageView({ message: { role, text, rest } }: { message: Message }) {
  const [isWhole, setWhole] = useState(false);
  const isLong = text.length > LONGEST && !isWhole;
  return (
    <div className="rounded-md border border-line bg-sunken px-3 py-2" data-testid="call-message">
      {role !== "reply" && <p className="text-[11px] font-semibold text-muted">{role}</p>}
      {passages(isLong ? text.slice(0, LONGEST) : text).map(({ kind, text: part }, index) =>
        kind === "code" ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text never change their places
          <div key={index} className="my-1 rounded border border-line bg-surface px-2 py-1">
            <Code text={part} />
          </div>
        ) : (
          // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text never change their places
          <p key={index} className="whitespace-pre-wrap wrap-anywhere">
            {part}
          </p>
        ),
      )}
      {isLong && (
        <button type="button" className="mt-1 text-accent hover:underline" onClick={() => setWhole(true)}>
          Show all {count(text.length)} characters
        </button>
      )}
      {rest && (
        <div className="mt-2">
          <JsonTree value={rest} label={`More of ${role}`} />
        </div>
      )}
    </div>
  );
}
