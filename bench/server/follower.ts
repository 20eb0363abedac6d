import { io, type Socket } from "socket.io-client";
import type { Action } from "../../src/domain/action.ts";
import type { Topic } from "../../src/store/store.ts";

const WITHIN_MS = 30_000;

/** A client of the server's sockets. */
export class Follower implements Disposable {
  readonly socket: Socket;

  private constructor(socket: Socket) {
    this.socket = socket;
  }

  static async connect(port: number): Promise<Follower> {
    const socket = io(`http://127.0.0.1:${port}`, { transports: ["websocket"], forceNew: true, reconnection: false });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    socket.once("connect", resolve);
    socket.once("connect_error", reject);
    await promise;
    return new Follower(socket);
  }

  async subscribe(topic: Topic): Promise<void> {
    const answer = (await this.socket.timeout(WITHIN_MS).emitWithAck("subscribe", topic)) as { ok: boolean };
    if (!answer.ok) throw new Error(`a subscription was answered ${JSON.stringify(answer)}`);
  }

  /** When the first event of the matching action arrived, by `performance.now()`. */
  nextAction(isMeant: (action: Action) => boolean): Promise<number> {
    const { promise, resolve, reject } = Promise.withResolvers<number>();
    const timer = setTimeout(() => reject(new Error(`waited ${WITHIN_MS / 1_000} s in vain for an action`)), WITHIN_MS);
    const look = (action: Action): void => {
      if (isMeant(action)) resolve(performance.now());
    };
    this.socket.on("action_update", look);
    return promise.finally(() => {
      clearTimeout(timer);
      this.socket.off("action_update", look);
    });
  }

  [Symbol.dispose](): void {
    this.socket.disconnect();
  }
}
