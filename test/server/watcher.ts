import assert from "node:assert/strict";
import { io, type ManagerOptions, type Socket, type SocketOptions } from "socket.io-client";
import { within } from "../within.ts";

export type Topic = Record<string, unknown>;
export type Acknowledgement = { ok: boolean; error?: string };
/** An event from the server. */
export type ReceivedEvent = { event: string; payload: unknown };

const WAIT_MS = 60_000;

/** A client that follows the server over Socket.IO and remembers every event. */
export class Watcher implements Disposable {
  readonly events: ReceivedEvent[] = [];
  readonly socket: Socket;
  readonly #listeners = new Set<() => void>();

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.onAny((event: string, payload: unknown) => {
      this.events.push({ event, payload });
      for (const listener of this.#listeners) listener();
    });
  }

  static async connect(url: string, options: Partial<ManagerOptions & SocketOptions> = {}): Promise<Watcher> {
    const socket = io(url, { transports: ["websocket"], forceNew: true, reconnection: false, ...options });
    const watcher = new Watcher(socket);
    const connected = Promise.withResolvers<void>();
    socket.once("connect", connected.resolve);
    socket.once("connect_error", connected.reject);
    try {
      await within(WAIT_MS, connected.promise, () => `no socket to ${url}`);
    } catch (error) {
      watcher[Symbol.dispose]();
      throw error;
    }
    return watcher;
  }

  async subscribe(topic: unknown): Promise<Acknowledgement> {
    return (await this.socket.timeout(WAIT_MS).emitWithAck("subscribe", topic)) as Acknowledgement;
  }

  async unsubscribe(topic: unknown): Promise<Acknowledgement> {
    return (await this.socket.timeout(WAIT_MS).emitWithAck("unsubscribe", topic)) as Acknowledgement;
  }

  /** Subscribes, or fails the test. */
  async follow(topic: Topic): Promise<void> {
    assert.deepEqual(await this.subscribe(topic), { ok: true }, JSON.stringify(topic));
  }

  /** The payloads of an event so far. */
  of<Payload>(event: string): Payload[] {
    return this.events.filter((one) => one.event === event).map(({ payload }) => payload as Payload);
  }

  /** Waits until the events so far fit, and resolves with what `fits` returned. */
  async until<Value>(what: string, fits: (events: ReceivedEvent[]) => Value | undefined | false): Promise<Value> {
    const fitting = Promise.withResolvers<Value>();
    const look = () => {
      try {
        const value = fits(this.events);
        if (value !== undefined && value !== false) fitting.resolve(value);
      } catch (error) {
        fitting.reject(error);
      }
    };
    this.#listeners.add(look);
    try {
      look();
      return await within(WAIT_MS, fitting.promise, () => `not told: ${what}`);
    } finally {
      this.#listeners.delete(look);
    }
  }

  [Symbol.dispose](): void {
    this.socket.disconnect();
  }
}
