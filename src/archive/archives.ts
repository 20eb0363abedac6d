import { EverstepError } from "../domain/errors.ts";
import { newId, now } from "../domain/ids.ts";
import type { ArchivedRange, ArchiveJob, Volume } from "../domain/volume.ts";
import type { EndedSession, QuietConversation, Store, StoredMessageRow, StoredStepRow } from "../store/store.ts";
import { messageOf } from "../store/store-errors.ts";
import { VOLUME_FORMAT } from "./location.ts";
import type { VolumeFiles, VolumeSum, VolumeWriter } from "./volume-files.ts";

/** What a volume holds at most, unless one session is more. */
const VOLUME = { owners: 5000, rows: 1_000_000 };
/** Ranges, and rows of them, that one move takes out of the tables. */
const MOVE = { ranges: 500, rows: 20_000 };

const NOTHING = { sessions: 0, steps: 0, messages: 0, bytes: 0 };

export type Operation =
  | { kind: "archive"; older_than_ms: number; dry_run: boolean }
  | { kind: "restore"; session_ids: string[] }
  | { kind: "drop"; older_than_ms: number; dry_run: boolean };

/**
 * Moves what ended into volumes, brings it back, and drops it.
 *
 * ARCHIVES-1  A volume's rows leave the tables only after its files are on disk and every row was read back from them.
 * ARCHIVES-2  One job runs at a time, over all processes. Each begins with what an earlier one left: volumes that were announced and never
 *     recorded go, rows of a recorded one that are still in the tables leave them, files of dropped volumes go.
 * ARCHIVES-3  Files are removed only once the store says, durably, that nothing is read from them any more.
 */
export class Archives {
  readonly #store: Store;
  readonly #openFiles: () => Promise<VolumeFiles>;
  #opened: Promise<VolumeFiles> | undefined;
  readonly #location: string | null;
  #job: ArchiveJob | null = null;
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isStopping = false;

  /** `location`: where new volumes go; null where none is configured. */
  constructor(store: Store, openFiles: () => Promise<VolumeFiles>, location: string | null) {
    this.#store = store;
    this.#openFiles = openFiles;
    this.#location = location;
    store.volumes.attach({
      steps: async (...part) => (await this.#files()).steps(...part),
      messages: async (...part) => (await this.#files()).messages(...part),
      findMessage: async (...message) => (await this.#files()).findMessage(...message),
    });
  }

  /** LanceDB is loaded when it is first needed. */
  #files(): Promise<VolumeFiles> {
    this.#opened ??= this.#openFiles();
    return this.#opened;
  }

  get job(): ArchiveJob | null {
    return this.#job && { ...this.#job };
  }

  list(): Promise<Volume[]> {
    return this.#store.volumes.list();
  }

  /** Begins a job; `done` awaits its end. Throws where one runs. */
  start(operation: Operation): ArchiveJob {
    if (this.#running) throw busy();
    if (operation.kind === "archive") this.#requireLocation();
    const job: ArchiveJob = {
      operation: operation.kind,
      dry_run: "dry_run" in operation && operation.dry_run,
      state: "running",
      started_at: now(),
      ended_at: null,
      ...NOTHING,
      volumes: 0,
      error: null,
    };
    this.#job = job;
    this.#running = this.#run(operation, job).finally(() => {
      this.#running = null;
    });
    return { ...job };
  }

  /** Of what was started last. */
  async done(): Promise<ArchiveJob | null> {
    await this.#running;
    return this.job;
  }

  /** Archives what ended so long ago, now and every hour. Throws where there is no place for it. */
  schedule(older_than_ms: number, failed: (why: string) => void): void {
    this.#requireLocation();
    const archive = (): void => {
      if (this.#running || this.#isStopping) return;
      this.start({ kind: "archive", older_than_ms, dry_run: false });
      void this.done().then((job) => job?.error && failed(job.error));
    };
    this.#timer = setInterval(archive, 3_600_000).unref();
    setImmediate(archive);
  }

  /** What is under way is left where it stands: the next job goes on with it. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearInterval(this.#timer);
    await this.#running;
    await (await this.#opened)?.close();
  }

  async #run(operation: Operation, job: ArchiveJob): Promise<void> {
    const work = (): Promise<void> => this.#perform(operation, job);
    try {
      await (this.#store.withLock?.("archives", work) ?? work()); // ARCHIVES-2
      job.state = "done";
    } catch (error) {
      job.state = "failed";
      job.error = messageOf(error);
    } finally {
      job.ended_at = now();
    }
  }

  async #perform(operation: Operation, job: ArchiveJob): Promise<void> {
    const isReadOnly = job.dry_run;
    if (!isReadOnly) await this.#finishEarlier();
    switch (operation.kind) {
      case "archive":
        return this.#archive(timeBefore(operation.older_than_ms), job);
      case "restore":
        return this.#restore(operation.session_ids, job);
      case "drop":
        return this.#drop(timeBefore(operation.older_than_ms), job);
    }
    return operation satisfies never;
  }

  /** ARCHIVES-2. Files of volumes that this store does not know may be somebody else's, and stay. */
  async #finishEarlier(): Promise<void> {
    const { volumes } = this.#store;
    const allVolumes = await volumes.list();
    for (const volume of allVolumes) {
      if (volume.state === "moving") await this.#move(volume.volume_id);
      else if (volume.state !== "dropped") await this.#removeUnused(volume);
    }
    const dropped = allVolumes.filter(({ state }) => state === "dropped");
    for (const location of new Set(dropped.map((volume) => volume.location))) {
      const present = await (await this.#files()).present(location);
      for (const { volume_id } of dropped) if (present.has(volume_id)) await this.#remove(location, volume_id); // ARCHIVES-3
    }
  }

  async #archive(before: string, job: ArchiveJob): Promise<void> {
    const { volumes } = this.#store;
    for await (const sessions of batches(volumes.endedSessions(before), stepsOf)) {
      if (job.dry_run) count(job, { sessions: sessions.length, steps: sum(sessions, stepsOf) });
      else await this.#archiveSessions(sessions, job);
    }
    for await (const conversations of batches(volumes.quietConversations(before), messagesOf)) {
      if (job.dry_run) count(job, { messages: sum(conversations, messagesOf) });
      else await this.#archiveConversations(conversations, job);
    }
    if (job.volumes > 0 && !job.dry_run) await volumes.reclaim?.();
  }

  async #archiveSessions(sessions: readonly EndedSession[], job: ArchiveJob): Promise<void> {
    const byId = new Map(sessions.map((session) => [session.session_id, session]));
    const ended = sessions.map(({ ended_at }) => ended_at).sort();
    await this.#write(job, { oldest_ended_at: ended[0] ?? null, newest_ended_at: ended.at(-1) ?? null }, (volume) => ({
      rows: this.#store.volumes.readSteps(sessions),
      kind: "steps",
      ownerOf: (row: StoredStepRow) => row.session_id,
      toRange(owner_id, first_row, rows) {
        const session = byId.get(owner_id);
        // It went on while it was read.
        if (!session || rows !== stepsOf(session)) return null;
        const { agent_id, first, iteration: last, error_rows } = session;
        return { ...newRange(volume, "steps", owner_id), agent_id, first, last, error_rows, first_row, rows };
      },
    }));
  }

  async #archiveConversations(conversations: readonly QuietConversation[], job: ArchiveJob): Promise<void> {
    const byId = new Map(conversations.map((conversation) => [conversation.conversation_id, conversation]));
    await this.#write(job, { oldest_ended_at: null, newest_ended_at: null }, (volume) => ({
      rows: this.#store.volumes.readMessages(conversations),
      kind: "messages",
      ownerOf: (row: StoredMessageRow) => row.conversation_id,
      toRange(owner_id, first_row, rows) {
        const conversation = byId.get(owner_id);
        if (!conversation || rows !== messagesOf(conversation)) return null;
        const { first, last } = conversation;
        return { ...newRange(volume, "messages", owner_id), first, last, error_rows: 0, first_row, rows };
      },
    }));
  }

  /** One volume from its announcement to the last row that leaves the tables. */
  async #write<Row>(
    job: ArchiveJob,
    ended: Pick<Volume, "oldest_ended_at" | "newest_ended_at">,
    source: (volume: Volume) => Source<Row>,
  ): Promise<void> {
    this.#requireRunning();
    const files = await this.#files();
    const volume = this.#newVolume(ended);
    await this.#store.volumes.announce(volume); // VOLUMES-3
    const writer = await files.writer(volume);
    const ranges = await copy(source(volume), writer, () => this.#requireRunning());
    await files.sync(volume);
    const { kinds, written } = writer;
    requireSame(volume, written, await files.sum(volume, kinds)); // ARCHIVES-1
    const bytes = await files.size(volume, kinds);
    const sessions = ranges.filter(({ kind }) => kind === "steps").length;
    const recorded: Volume = { ...volume, ...written, state: "moving", sessions, bytes };
    if (!(await this.#store.volumes.record(recorded, ranges))) {
      await files.remove(volume.location, volume.volume_id);
      throw taken(volume);
    }
    job.volumes += 1;
    job.bytes += bytes;
    await this.#move(volume.volume_id, job);
  }

  #newVolume(ended: Pick<Volume, "oldest_ended_at" | "newest_ended_at">): Volume {
    return {
      volume_id: newId(),
      state: "writing",
      location: this.#requireLocation(),
      format: VOLUME_FORMAT,
      created_at: now(),
      ...NOTHING,
      checksum: null,
      ...ended,
    };
  }

  /** A volume whose files are whole: its rows leave the tables. */
  async #move(volume_id: string, job?: ArchiveJob): Promise<void> {
    const { volumes } = this.#store;
    const copied = (await volumes.ranges({ volume_id })).filter(({ state }) => state === "copied");
    for (const some of chunks(copied)) {
      this.#requireRunning();
      const moved = await volumes.move(some);
      if (!job) continue;
      const rows = sum(some, (range) => range.rows);
      count(job, some[0]?.kind === "steps" ? { sessions: moved, steps: rows } : { messages: rows });
    }
    await volumes.finish(volume_id);
    const volume = (await volumes.list()).find((candidate) => candidate.volume_id === volume_id);
    if (volume) await this.#removeUnused(volume);
  }

  async #restore(session_ids: readonly string[], job: ArchiveJob): Promise<void> {
    const { volumes } = this.#store;
    const files = await this.#files();
    const owners = new Set(session_ids);
    for (const id of session_ids) {
      const session = await this.#store.getSession(id);
      if (!session) throw unknownSession(id);
      if (session.conversation_id !== null) owners.add(session.conversation_id);
    }
    const ranges = (await volumes.ranges({ owner_ids: [...owners] })).filter(({ state }) => state === "archived");
    const byId = new Map((await volumes.list()).map((volume) => [volume.volume_id, volume]));
    for (const range of ranges.toSorted((a, b) => b.first - a.first)) {
      this.#requireRunning();
      const volume = byId.get(range.volume_id) as Volume;
      if (range.kind === "steps") {
        const steps = await files.steps(volume, range, 0, range.rows);
        await volumes.restore(range, { steps });
        count(job, { sessions: 1, steps: range.rows });
      } else {
        const messages = await files.messages(volume, range, 0, range.rows);
        await volumes.restore(range, { messages });
        count(job, { messages: range.rows });
      }
      await this.#removeUnused(volume);
    }
  }

  /** ARCHIVES-3: a volume that was only announced, or of which nothing counts any more. Its row goes last. */
  async #removeUnused({ volume_id, state, location }: Volume): Promise<void> {
    const { volumes } = this.#store;
    if (state !== "writing" && (await volumes.ranges({ volume_id })).length > 0) return;
    await this.#remove(location, volume_id);
    await volumes.forget(volume_id);
  }

  async #remove(location: string, volume_id: string): Promise<void> {
    const files = await this.#files();
    const remove = (): Promise<void> => files.remove(location, volume_id);
    await (this.#store.volumes.removing?.(remove) ?? remove());
  }

  async #drop(before: string, job: ArchiveJob): Promise<void> {
    const { volumes } = this.#store;
    for (const { volume_id, location, sessions, steps, messages, bytes } of await volumes.droppable(before)) {
      if (!job.dry_run) {
        this.#requireRunning();
        await volumes.drop(volume_id);
        await this.#remove(location, volume_id); // ARCHIVES-3
      }
      job.volumes += 1;
      count(job, { sessions, steps, messages, bytes });
    }
  }

  #requireLocation(): string {
    if (this.#location !== null) return this.#location;
    throw new EverstepError(
      "config_invalid",
      "no place for archived history is named",
      "set EVERSTEP_ARCHIVE to a folder that every server can reach, or to s3://BUCKET/PREFIX",
    );
  }

  #requireRunning(): void {
    if (this.#isStopping) throw new EverstepError("archive_busy", "the server is stopping", "run it again; it goes on");
  }
}

type Source<Row> = {
  rows: AsyncIterable<Row>;
  kind: ArchivedRange["kind"];
  ownerOf: (row: Row) => string;
  /** Null where the owner's rows are not to be moved. */
  toRange: (owner_id: string, first_row: number, rows: number) => ArchivedRange | null;
};

/** Writes the rows and answers the ranges that they make. */
async function copy<Row>(source: Source<Row>, writer: VolumeWriter, check: () => void): Promise<ArchivedRange[]> {
  const ranges: ArchivedRange[] = [];
  let owner: string | null = null;
  let first_row = 0;
  let at = 0;
  const close = (): void => {
    const range = owner === null ? null : source.toRange(owner, first_row, at - first_row);
    if (range) ranges.push({ ...range, range_id: `${range.range_id}.${ranges.length}` });
  };
  for await (const row of source.rows) {
    const next = source.ownerOf(row);
    if (next !== owner) {
      check();
      close();
      [owner, first_row] = [next, at];
    }
    await writer.add(source.kind as "steps", row as StoredStepRow);
    at += 1;
  }
  close();
  await writer.finish();
  return ranges;
}

const newRange = (
  { volume_id }: Volume,
  kind: ArchivedRange["kind"],
  owner_id: string,
): Pick<ArchivedRange, "range_id" | "volume_id" | "kind" | "state" | "owner_id" | "agent_id"> => ({
  range_id: `${volume_id}.${kind}`,
  volume_id,
  kind,
  state: "copied",
  owner_id,
  agent_id: null,
});

const stepsOf = ({ first, iteration, error_rows, archived_error_rows }: EndedSession): number =>
  iteration - first + 1 + error_rows - archived_error_rows;
const messagesOf = ({ first, last }: QuietConversation): number => last - first + 1;
const sum = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((total, item) => total + of(item), 0);

function count(job: ArchiveJob, more: Partial<Pick<ArchiveJob, "sessions" | "steps" | "messages" | "bytes">>): void {
  for (const [name, amount] of Object.entries(more)) job[name as "sessions"] += amount;
}

const timeBefore = (ms: number): string => new Date(Date.now() - ms).toISOString();

/** As many as a volume takes. */
async function* batches<Item>(items: AsyncIterable<Item>, rowsOf: (item: Item) => number): AsyncGenerator<Item[]> {
  let batch: Item[] = [];
  let rows = 0;
  for await (const item of items) {
    if (batch.length >= VOLUME.owners || (batch.length > 0 && rows + rowsOf(item) > VOLUME.rows)) {
      yield batch;
      [batch, rows] = [[], 0];
    }
    batch.push(item);
    rows += rowsOf(item);
  }
  if (batch.length > 0) yield batch;
}

function* chunks(ranges: readonly ArchivedRange[]): Generator<ArchivedRange[]> {
  let chunk: ArchivedRange[] = [];
  for (const range of ranges) {
    const isFull = chunk.length >= MOVE.ranges || sum(chunk, ({ rows }) => rows) + range.rows > MOVE.rows;
    if (chunk.length > 0 && isFull) {
      yield chunk;
      chunk = [];
    }
    chunk.push(range);
  }
  if (chunk.length > 0) yield chunk;
}

function requireSame({ volume_id, location }: Volume, written: VolumeSum, actual: VolumeSum): void {
  if (written.steps === actual.steps && written.messages === actual.messages && written.checksum === actual.checksum)
    return;
  throw new EverstepError(
    "archive_damaged",
    `volume ${volume_id} in ${location} is not what was written: ${actual.steps} steps and ${actual.messages} messages were read back of ${written.steps} and ${written.messages}`,
    "look at the disk; nothing left the store's tables",
  );
}

const busy = (): EverstepError =>
  new EverstepError(
    "archive_busy",
    "another archive job is under way",
    "wait for its end: `everstep archive` alone tells how it goes",
  );

const taken = ({ volume_id }: Volume): EverstepError =>
  new EverstepError(
    "archive_busy",
    `another process took volume ${volume_id} for one that was left behind`,
    "run it again; nothing left the store's tables",
  );

const unknownSession = (session_id: string): EverstepError =>
  new EverstepError(
    "request_refused",
    `there is no session ${session_id}`,
    "`everstep ps` lists the sessions there are",
  );
