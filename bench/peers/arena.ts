import { readFile } from "node:fs/promises";
import { join } from "node:path";
import postgres from "postgres";
import { freePort } from "../../test/free-port.ts";
import { BenchDatabase } from "../cluster/database.ts";
import type { AgentWork } from "./agent/agent-peer.ts";
import type { Contender } from "./contenders.ts";
import { sizeOfFolder } from "./folder-size.ts";
import type { Place } from "./peer.ts";
import { PeerChild } from "./peer-child.ts";
import { processorTime } from "./processor-time.ts";
import { RestateServer } from "./restate-server.ts";

/** A fresh environment for one contender, so that none is affected by another's data. */
export class Stand implements AsyncDisposable {
  readonly #contender: Contender;
  readonly #place: Place;
  readonly #arena: Arena;
  readonly #restate: RestateServer | null;
  readonly #database: string;
  #lives = 0;

  constructor(arena: Arena, contender: Contender, place: Place, database: string, restate: RestateServer | null) {
    this.#arena = arena;
    this.#contender = contender;
    this.#place = place;
    this.#database = database;
    this.#restate = restate;
  }

  get folder(): string {
    return this.#place.folder;
  }

  /** Starts a process of the contender on the data that earlier ones left here. */
  open(trace: string | null = null): Promise<PeerChild> {
    const { program, variant } = this.#contender;
    if (program === null) throw new Error("it has no steps");
    return PeerChild.open({ program, variant, place: this.#place, trace, life: ++this.#lives });
  }

  /** The same with agents instead of steps. */
  openAgents(work: AgentWork): Promise<PeerChild> {
    const { agents: program, variant } = this.#contender;
    if (program === null) throw new Error("it has no agents");
    return PeerChild.open({ program, variant, place: this.#place, trace: null, life: ++this.#lives, work });
  }

  /** Milliseconds of CPU time so far, of the process and of the servers that work for it. */
  async processorTime({ pid }: PeerChild): Promise<number> {
    const server = { files: null, postgres: this.#arena.database_pid, restate: this.#restate?.pid ?? null };
    const working = server[this.#contender.keeps];
    return (await processorTime(pid)) + (working === null ? 0 : await processorTime(working));
  }

  /** Bytes stored now. */
  async bytes(): Promise<number> {
    switch (this.#contender.keeps) {
      case "files":
        return sizeOfFolder(this.#place.folder);
      case "postgres":
        return this.#arena.sizeOfDatabase(this.#database);
      case "restate":
        return this.#restate?.bytes() ?? Number.NaN;
    }
    return this.#contender.keeps satisfies never;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#restate?.[Symbol.asyncDispose]();
    await this.#arena.query(`drop database if exists ${this.#database} with (force)`);
  }
}

/** The servers that contenders share, and a stand for each. */
export class Arena implements AsyncDisposable {
  readonly #database: BenchDatabase;
  readonly #folder: string;
  readonly database_pid: number;
  #stands = 0;

  private constructor(database: BenchDatabase, folder: string, database_pid: number) {
    this.#database = database;
    this.#folder = folder;
    this.database_pid = database_pid;
  }

  static async open(folder: string): Promise<Arena> {
    const database = await BenchDatabase.start(folder);
    const pid = (await readFile(join(folder, "postgres", "postmaster.pid"), "utf8")).split("\n")[0];
    return new Arena(database, folder, Number(pid));
  }

  async stand(contender: Contender): Promise<Stand> {
    const number = ++this.#stands;
    const folder = join(this.#folder, `stand-${process.pid}-${number}`);
    const database = `stand_${number}`;
    await this.query(`create database ${database}`);
    const database_url = this.#database.url.replace(/\/postgres$/, `/${database}`);
    const server = contender.keeps === "restate" ? await RestateServer.start(join(folder, "restate")) : null;
    const service_port = await freePort();
    const restate = { ingress: server?.ingress ?? "", admin: server?.admin ?? "", service_port };
    return new Stand(this, contender, { folder, database_url, restate }, database, server);
  }

  async query(statement: string): Promise<Record<string, unknown>[]> {
    const client = postgres(this.#database.url, { max: 1, onnotice: () => {} });
    try {
      return await client.unsafe(statement);
    } finally {
      await client.end();
    }
  }

  async sizeOfDatabase(name: string): Promise<number> {
    const [row] = await this.query(`select pg_database_size('${name}')::float8 as bytes`);
    return Number(row?.["bytes"]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#database[Symbol.asyncDispose]();
  }
}
