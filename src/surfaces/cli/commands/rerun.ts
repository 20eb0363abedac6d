import type { JsonObject, JsonValue } from "../../../domain/json.ts";
import { isObject } from "../../../domain/json.ts";
import { type Rerun, recordedFrame, rerunSchema } from "../../../domain/rerun.ts";
import type { Step } from "../../../domain/step.ts";
import { type ApiClient, CommandError } from "../client.ts";
import { coloured, oneLine, printable } from "../output.ts";
import { findSession, sessionPath, stepsAfter } from "../sessions.ts";

export type RerunOptions = { model?: string; guidance?: string; state?: string; json?: boolean };
export type ReplayOptions = { from: string; to?: string; model?: string; json?: boolean };

const WIDEST = 200;
/** A step may call a model; the step's own limit ends it. */
const UNLIMITED = { timeout_ms: 0 };

/** Reruns one recorded step and prints its result. */
export async function rerun(
  client: ApiClient,
  prefix: string,
  iteration: string,
  options: RerunOptions,
): Promise<void> {
  if (!/^\d+$/.test(iteration)) throw new CommandError(`${iteration} is not an iteration`, 2);
  const { session_id } = await findSession(client, prefix);
  const { model, guidance, state, json } = options;
  const again = await rerunStep(client, session_id, iteration, {
    ...(model === undefined ? {} : { model }),
    ...(guidance === undefined ? {} : { guidance }),
    ...(state === undefined ? {} : { state: jsonObject(state) }),
  });
  if (json) return console.log(JSON.stringify(again));
  if (again.frame) console.log(printable(again.frame.text ?? JSON.stringify(again.frame.data ?? null)));
  console.log(summary(again));
  if (again.error !== null) throw new CommandError(printable(again.error));
}

/** Reruns a range of recorded steps and prints the differences. Like `diff`, the exit code is 1 if there are any. */
export async function replay(client: ApiClient, prefix: string, options: ReplayOptions): Promise<void> {
  const { session_id } = await findSession(client, prefix);
  const last = options.to === undefined ? Number.POSITIVE_INFINITY : Number(options.to);
  const body = options.model === undefined ? {} : { model: options.model };
  const counts = { same: 0, differing: 0 };
  for await (const step of stepsAfter(client, session_id, Number(options.from) - 1)) {
    if (step.iteration > last) break;
    if (step.status !== "ok") continue;
    const again = await rerunStep(client, session_id, step.iteration, body);
    counts[again.differs ? "differing" : "same"] += 1;
    if (options.json) console.log(JSON.stringify({ iteration: step.iteration, ...again }));
    else console.log([heading(step, again), ...differenceLines(step, again)].join("\n"));
  }
  const { same, differing } = counts;
  if (!options.json) console.log(`${same + differing} steps rerun, ${differing} differ; nothing was written`);
  if (differing > 0) process.exitCode = 1;
}

const rerunStep = (client: ApiClient, session_id: string, iteration: string | number, body: object): Promise<Rerun> =>
  client.post(rerunSchema, sessionPath(session_id, `/steps/${iteration}/rerun`), body, UNLIMITED);

function heading({ iteration, step_token }: Step, again: Rerun): string {
  return `${coloured("gray", `#${iteration}`)} ${printable(step_token)}: ${summary(again)}`;
}

function summary({ differs, differences, latency_ms, tokens_used }: Rerun): string {
  const word = differs ? coloured("yellow", `differs in ${differences.join(", ")}`) : coloured("green", "the same");
  return `${word} (${Math.round(latency_ms)} ms${tokens_used > 0 ? `, ${tokens_used} tokens` : ""})`;
}

function differenceLines(step: Step, { differences, frame, error }: Rerun): string[] {
  if (!frame) return [`  ${coloured("green", `+ ${oneLine(error ?? "", WIDEST)}`)}`];
  const [before, now] = [recordedFrame(step), frame as JsonObject];
  return differences.flatMap((field) => changed(field, before[field], now[field]));
}

/** Compares objects field by field, so that a long state shows only what matters. */
function changed(field: string, before: JsonValue | undefined, now: JsonValue | undefined): string[] {
  if (JSON.stringify(before) === JSON.stringify(now)) return [];
  if (isObject(before) && isObject(now) && field.split(".").length < 3)
    return [...new Set([...Object.keys(before), ...Object.keys(now)])].flatMap((key) =>
      changed(`${field}.${key}`, before[key], now[key]),
    );
  const line = (sign: string, value: JsonValue | undefined): string =>
    `${sign} ${printable(field)}: ${oneLine(typeof value === "string" ? value : JSON.stringify(value ?? null), WIDEST)}`;
  return [`  ${coloured("red", line("-", before))}`, `  ${coloured("green", line("+", now))}`];
}

function jsonObject(text: string): JsonObject {
  try {
    const value: unknown = JSON.parse(text);
    if (isObject(value)) return value;
  } catch {
    // Reported below, like JSON that is not an object.
  }
  throw new CommandError(`--state ${text} is not a JSON object`, 2);
}
