import type { Handler, HandlerContext } from "../handlers/handler.ts";
import { notice, type Outgoing } from "../outgoing/outgoing.ts";
import type { Incoming, IncomingCallback, IncomingCommand, IncomingMessage } from "./incoming.ts";

type Registered = {
  message: Handler<IncomingMessage>;
  command: Handler<IncomingCommand>;
  callback: Handler<IncomingCallback>;
};

/** Finds the handler that was registered for an event. */
export class Dispatcher {
  readonly #commands = new Map<string, Handler<IncomingCommand>>();
  readonly #callbacks = new Map<string, Handler<IncomingCallback>>();
  #message: Handler<IncomingMessage> = () => [];

  register(kind: "message", handler: Registered["message"]): void;
  register(kind: "command", name: string, handler: Registered["command"]): void;
  register(kind: "callback", action: IncomingCallback["action"], handler: Registered["callback"]): void;
  register(kind: Incoming["kind"], ...rest: [unknown, unknown?]): void {
    if (kind === "message") this.#message = rest[0] as Registered["message"];
    else if (kind === "command") this.#commands.set(rest[0] as string, rest[1] as Registered["command"]);
    else this.#callbacks.set(rest[0] as string, rest[1] as Registered["callback"]);
  }

  dispatch(event: Incoming, context: HandlerContext): Outgoing[] {
    switch (event.kind) {
      case "message":
        return this.#message(event, context);
      case "callback":
        return this.#callbacks.get(event.action)?.(event, context) ?? [];
      case "command": {
        const handler = this.#commands.get(event.name);
        if (handler) return handler(event, context);
        // A word with a mark before it is ordinary text, unless the bot was called.
        return event.is_addressed
          ? [notice(context.say.unknown_command(event.name))]
          : this.#message({ ...event, kind: "message" }, context);
      }
    }
    return event satisfies never;
  }
}
