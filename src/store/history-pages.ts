import { setImmediate as nextTick } from "node:timers/promises";
import type { Message } from "../domain/conversation.ts";
import { EverstepError } from "../domain/errors.ts";
import { copyJson } from "../domain/json.ts";
import type { Step } from "../domain/step.ts";
import { type ArchivedRange, hasErrors, type Volume } from "../domain/volume.ts";
import type { PortRows, StoredRows } from "./schema.ts";
import { type Chain, readState } from "./state-delta.ts";
import type { MessageFilter, StepFilter, StoredMessageRow, StoredStepRow, VolumeReader, VolumeStore } from "./store.ts";

/** A session of a fork's lineage. `parent_iteration` is the last iteration that it shares with its parent. */
export type Ancestor = { session_id: string; parent_iteration: number | null; error_rows: number };
/** A range of a session's own iterations, both ends included. A fork's history is a list of them. */
export type Stretch = { session_id: string; first: number; last: number };
type Lineage = { stretches: Stretch[]; hasErrors: boolean };

/** Splits a fork's history into the iterations that are its own, its parent's, and so on. */
export function lineageOf(line: readonly Ancestor[]): Lineage {
  const stretches: Stretch[] = [];
  let last = Number.MAX_SAFE_INTEGER;
  for (const { session_id, parent_iteration } of line) {
    const shared = parent_iteration ?? -1;
    stretches.push({ session_id, first: shared + 1, last });
    last = Math.min(last, shared);
  }
  return { stretches, hasErrors: line.some(({ error_rows }) => error_rows > 0) };
}

/** The range of iterations of a filter, both ends included. */
export function iterationsOf({ min_iteration, after_iteration, max_iteration }: StepFilter): {
  from: number;
  to: number;
} {
  return {
    from: Math.max(0, min_iteration ?? 0, (after_iteration ?? -1) + 1),
    to: max_iteration ?? Number.MAX_SAFE_INTEGER,
  };
}

/**
 * Locates a page of a session's steps. Iterations have no gaps, so a page is a range that an index finds directly: then `isExact` is
 * true and the parts are the page. If there are failed attempts in between, the offset counts rows within the parts.
 */
export type PageParts = { parts: Stretch[]; first: number; offset: number; isExact: boolean };

export function pageParts(filter: StepFilter, { stretches, hasErrors: hasErrorRows }: Lineage): PageParts {
  const { from, to } = iterationsOf(filter);
  const isBounded = filter.since_created_at === undefined && filter.status !== "error";
  const isExact = isBounded && (!hasErrorRows || filter.status === "ok");
  const first = isExact ? from + filter.offset : from;
  const last = isBounded ? Math.min(to, from + filter.offset + filter.limit - 1) : to;
  const parts = stretches
    .map((part) => ({ ...part, first: Math.max(part.first, first), last: Math.min(part.last, last) }))
    .filter((part) => part.first <= part.last);
  return { parts, first, offset: isExact ? 0 : filter.offset, isExact };
}

/** A step as it is stored, with what the port has of it. */
export type StoredStep = {
  stored: Pick<StoredRows["agent_steps"], "session_id" | "status" | "state_kind" | "base_iteration" | "state">;
  port: PortRows["agent_steps"];
};
/** A stored step, preceded by the steps before the page that its state is rebuilt from. */
export type StepWithBases = { step: StoredStep; bases: readonly StoredStep["stored"][] };

/** Milliseconds of decoding after which the event loop gets a turn: a page of large states must not block the program. */
const SLICE_MS = 10;

/** Turns stored steps into steps with whole states. */
export async function decodeSteps(page: readonly StepWithBases[]): Promise<Step[]> {
  const chains = new Map<string, Chain>();
  const steps: Step[] = [];
  let started = performance.now();
  const yieldToOthers = async (): Promise<void> => {
    if (performance.now() - started < SLICE_MS) return;
    await nextTick();
    started = performance.now();
  };
  for (const { step, bases } of page) {
    for (const base of bases) {
      extend(chains, base);
      await yieldToOthers();
    }
    // An error row is not part of the chain: its state is whole, and the next step does not build on it.
    const { state } = step.stored.status === "error" ? readState(null, step.stored) : extend(chains, step.stored);
    // Unchanged parts are shared along a chain; each reader gets a copy.
    steps.push({ ...step.port, state: copyJson(state) });
    await yieldToOthers();
  }
  return steps;
}

function extend(chains: Map<string, Chain>, stored: StoredStep["stored"]): Chain {
  const chain = readState(chains.get(stored.session_id) ?? null, stored);
  chains.set(stored.session_id, chain);
  return chain;
}

/** Rows that are read from a volume at once where they are looked through. */
const CHUNK = 256;

type Records = Pick<VolumeStore, "list" | "ranges">;
/** Iterations of one session, both ends included, and the range that has them; null where the tables do. */
type Segment = { session_id: string; range: ArchivedRange | null; first: number; last: number };
/** `skipped`: how many of the rows to skip were in the segment. */
type Taken<Row> = { rows: Row[]; skipped: number };
type SessionFilter = StepFilter & { session_id: string };
/** What the tables have of one session's own iterations. */
export type HotSteps = (filter: SessionFilter) => Promise<Step[]>;
export type HotMessages = (filter: MessageFilter & { first: number }) => Promise<Message[]>;

/**
 * Pages over rows of which some are in volumes. A session's rows are its ranges in order, then what the tables have. Dropped ranges
 * are left out as if they had never been.
 */
export class ArchivedHistory {
  readonly #records: Records;
  #reader: VolumeReader | null = null;
  /** They never change but for their state. */
  readonly #volumes = new Map<string, Volume>();

  constructor(records: Records) {
    this.#records = records;
  }

  attach(reader: VolumeReader): void {
    this.#reader = reader;
  }

  async steps(
    filter: SessionFilter,
    line: readonly Ancestor[],
    ranges: readonly ArchivedRange[],
    hot: HotSteps,
  ): Promise<Step[]> {
    const { from, to } = iterationsOf(filter);
    const segments = segmentsOf(line, ranges)
      .map((segment) => ({ ...segment, first: Math.max(segment.first, from), last: Math.min(segment.last, to) }))
      .filter(({ first, last }) => first <= last);
    const steps: Step[] = [];
    let offset = filter.offset;
    for (const segment of segments) {
      const limit = filter.limit - steps.length;
      if (limit <= 0) break;
      const page = { ...filter, limit, offset };
      const taken = segment.range
        ? await this.#takeSteps(segment as Segment & { range: ArchivedRange }, page)
        : await takeHot(segment, page, hot);
      steps.push(...taken.rows);
      offset -= taken.skipped;
    }
    return steps;
  }

  /** Of an agent's sessions, by iteration, then id: the tables' rows with those of all volumes. */
  async stepsOfAgent(
    filter: StepFilter & { agent_id: string },
    ranges: readonly ArchivedRange[],
    hot: Step[],
  ): Promise<Step[]> {
    const { from, to } = iterationsOf(filter);
    const limit = filter.offset + filter.limit;
    let steps = hot;
    for (const range of ranges) {
      if (range.state !== "archived") continue;
      // Later iterations than those of a full page cannot be on it.
      const latest = steps.length < limit ? to : Math.min(to, steps.at(-1)?.iteration ?? to);
      const segment = { session_id: range.owner_id, range, first: from, last: Math.min(latest, range.last + 1) };
      if (segment.first > segment.last || range.first > segment.last) continue;
      const page = { ...filter, session_id: range.owner_id, offset: 0, limit };
      const { rows } = await this.#takeSteps(segment, page);
      steps = [...steps, ...rows].sort((a, b) => a.iteration - b.iteration || (a.id < b.id ? -1 : 1)).slice(0, limit);
    }
    return steps.slice(filter.offset);
  }

  /** The newest step of a session's own up to an iteration. */
  async latestStep(ranges: readonly ArchivedRange[], last: number): Promise<Step | null> {
    const newestFirst = ranges.filter(({ state }) => state === "archived").toSorted((a, b) => b.first - a.first);
    for (const range of newestFirst) {
      for (let at = range.rows - 1; at >= 0; at--) {
        const [row] = await this.#steps(range, at, 1);
        if (row && row.iteration <= last) return (await this.#decode(range, [{ row, at }]))[0] ?? null;
      }
    }
    return null;
  }

  /** `first` is the number of the first message that is asked for. */
  async messages(
    filter: MessageFilter,
    from: number,
    ranges: readonly ArchivedRange[],
    hot: HotMessages,
  ): Promise<Message[]> {
    const messages: Message[] = [];
    let { offset } = filter;
    for (const range of inOrder(ranges)) {
      const limit = filter.limit - messages.length;
      if (limit <= 0) return messages;
      if (range.state !== "archived" || range.last < from) continue;
      const start = Math.max(0, from - range.first);
      const taken = await take(
        { start, end: range.rows, offset, limit, isDense: filter.since === undefined },
        (at, count) => this.#messages(range, at, count),
        ({ created_at }) => filter.since === undefined || created_at >= filter.since,
      );
      messages.push(...taken.rows.map(({ row }) => toMessage(row)));
      offset -= taken.skipped;
    }
    const limit = filter.limit - messages.length;
    if (limit <= 0) return messages;
    const first = Math.max(from, lastOf(ranges) + 1);
    return [...messages, ...(await hot({ ...filter, first, offset, limit }))];
  }

  /** A message by its number in its conversation; null where it is not in a volume. */
  async message(ranges: readonly ArchivedRange[], number: number): Promise<Message | null> {
    const range = ranges.find(({ state, first, last }) => state === "archived" && first <= number && number <= last);
    const [row] = range ? await this.#messages(range, number - range.first, 1) : [];
    return row ? toMessage(row) : null;
  }

  /** A message of which nothing but its id is known. */
  async findMessage(message_id: string): Promise<StoredMessageRow | null> {
    for (const volume of await this.#records.list()) {
      if (volume.state !== "archived" && volume.state !== "moving") continue;
      if (volume.messages === 0) continue;
      const row = await this.#reading().findMessage(volume, message_id);
      if (row) return row;
    }
    return null;
  }

  async #takeSteps(
    { range, first, last }: Segment & { range: ArchivedRange },
    filter: SessionFilter,
  ): Promise<Taken<Step>> {
    const { offset, limit, status, since_created_at } = filter;
    const isWithoutErrors = !hasErrors(range);
    const isFitting = (row: StoredStepRow): boolean =>
      row.iteration >= first &&
      row.iteration <= last &&
      (status === undefined || row.status === status) &&
      (since_created_at === undefined || row.created_at >= since_created_at);
    const taken = await take(
      {
        start: isWithoutErrors ? Math.max(0, first - range.first) : 0,
        end: isWithoutErrors ? Math.min(range.rows, last - range.first + 1) : range.rows,
        offset,
        limit,
        isDense: isWithoutErrors && status !== "error" && since_created_at === undefined,
      },
      (at, count) => this.#steps(range, at, count),
      isFitting,
    );
    return { rows: await this.#decode(range, taken.rows), skipped: taken.skipped };
  }

  /** With whole states, rebuilt from rows before them where they must be. */
  async #decode(range: ArchivedRange, rows: readonly LocatedRow<StoredStepRow>[]): Promise<Step[]> {
    const page: StepWithBases[] = [];
    let last: number | null = null;
    for (const { row, at } of rows) {
      const isRebuilt = row.status === "ok" && row.state_kind === "delta" && last !== row.iteration - 1;
      const bases = isRebuilt ? await this.#basesOf(range, row, at) : [];
      if (row.status === "ok") last = row.iteration;
      page.push({ step: { stored: row, port: toPortStep(row) }, bases });
    }
    return decodeSteps(page);
  }

  async #basesOf(
    range: ArchivedRange,
    { iteration, base_iteration }: StoredStepRow,
    at: number,
  ): Promise<StoredStepRow[]> {
    const bases: StoredStepRow[] = [];
    for (let end = at; end > 0 && (bases[0]?.iteration ?? iteration) > base_iteration; ) {
      const distance = (bases[0]?.iteration ?? iteration) - base_iteration;
      const start = Math.max(0, end - Math.min(distance, CHUNK));
      const rows = await this.#steps(range, start, end - start);
      bases.unshift(...rows.filter((row) => row.status === "ok" && row.iteration >= base_iteration));
      end = start;
    }
    return bases;
  }

  async #steps(range: ArchivedRange, from: number, count: number): Promise<StoredStepRow[]> {
    return this.#reading().steps(await this.#volume(range.volume_id), range, from, count);
  }

  async #messages(range: ArchivedRange, from: number, count: number): Promise<StoredMessageRow[]> {
    return this.#reading().messages(await this.#volume(range.volume_id), range, from, count);
  }

  #reading(): VolumeReader {
    if (this.#reader) return this.#reader;
    throw unreachable("this program was not told how volumes are read", "use a server that has EVERSTEP_ARCHIVE set");
  }

  async #volume(volume_id: string): Promise<Volume> {
    if (!this.#volumes.has(volume_id))
      for (const volume of await this.#records.list()) this.#volumes.set(volume.volume_id, volume);
    const volume = this.#volumes.get(volume_id);
    if (!volume) throw unreachable(`volume ${volume_id} is unknown`, "read again: it was changed meanwhile");
    return volume;
  }
}

export const unreachable = (what: string, next: string, cause?: unknown): EverstepError =>
  new EverstepError("archive_unreachable", what, next, cause);

const inOrder = (ranges: readonly ArchivedRange[]): ArchivedRange[] => ranges.toSorted((a, b) => a.first - b.first);

/** The last iteration or number that is in a volume, or was. */
const lastOf = (ranges: readonly ArchivedRange[]): number =>
  Math.max(-1, ...ranges.filter(({ state }) => state !== "copied").map(({ last }) => last));

/** Whether two looks found the same: nothing was moved in between. */
export const isSame = (a: readonly ArchivedRange[], b: readonly ArchivedRange[]): boolean => keyOf(a) === keyOf(b);
const keyOf = (ranges: readonly ArchivedRange[]): string =>
  ranges
    .map(({ range_id, state }) => `${range_id} ${state}`)
    .sort()
    .join("\n");

/** A line's iterations, ascending, by where they are. */
function segmentsOf(line: readonly Ancestor[], ranges: readonly ArchivedRange[]): Segment[] {
  return lineageOf(line)
    .stretches.toReversed()
    .flatMap(({ session_id, first, last }) => {
      const own = inOrder(ranges.filter(({ owner_id, kind }) => owner_id === session_id && kind === "steps"));
      const archived = own
        .filter(({ state }) => state === "archived")
        // Attempts that failed after the last step have the next iteration.
        .map((range) => ({ session_id, range, first: range.first, last: Math.min(last, range.last + 1) }));
      return [...archived, { session_id, range: null, first: Math.max(first, lastOf(own) + 1), last }];
    });
}

async function takeHot(segment: Segment, filter: SessionFilter, hot: HotSteps): Promise<Taken<Step>> {
  const { session_id, first, last } = segment;
  const { offset, limit } = filter;
  const { after_iteration: _, ...rest } = filter;
  const bounds = { ...rest, session_id, min_iteration: first, max_iteration: last };
  // How many there are is only known where they are read.
  const rows = await hot({ ...bounds, offset: 0, limit: offset + limit });
  return { rows: rows.slice(offset), skipped: Math.min(offset, rows.length) };
}

type LocatedRow<Row> = { row: Row; at: number };
type PageRange = { start: number; end: number; offset: number; limit: number /** Every row fits. */; isDense: boolean };

/** Rows of a range that fit, after as many of them as are to be skipped. */
async function take<Row>(
  { start, end, offset, limit, isDense }: PageRange,
  read: (at: number, count: number) => Promise<Row[]>,
  isFitting: (row: Row) => boolean,
): Promise<Taken<LocatedRow<Row>>> {
  const rows: LocatedRow<Row>[] = [];
  let skipped = isDense ? Math.min(offset, Math.max(0, end - start)) : 0;
  for (let at = start + skipped; at < end && rows.length < limit; ) {
    const chunk = await read(at, Math.min(CHUNK, end - at, isDense ? limit - rows.length : CHUNK));
    if (chunk.length === 0) break;
    for (const [index, row] of chunk.entries()) {
      if (!isFitting(row) || rows.length >= limit) continue;
      if (skipped < offset) skipped += 1;
      else rows.push({ row, at: at + index });
    }
    at += chunk.length;
  }
  return { rows, skipped };
}

function toPortStep(row: StoredStepRow): Omit<Step, "state"> {
  const { pos: _pos, state: _state, state_kind: _kind, base_iteration: _base, ...step } = row;
  return step;
}

export function toMessage(row: StoredMessageRow): Message {
  const { pos: _pos, number: _number, ...message } = row;
  return message;
}
