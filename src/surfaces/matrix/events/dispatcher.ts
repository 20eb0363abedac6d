import type { Handler, HandlerContext } from "../handlers/handler.ts";
import type { Outgoing } from "../outgoing/outgoing.ts";
import type { Incoming, IncomingCallback, IncomingCommand, IncomingMessage } from "./incoming.ts";

type Registered = {
  message: Handler<IncomingMessage>;
  command: Handler<IncomingCommand>;
  callback: Handler<IncomingCallback>;
};

/** Finds the handler registered for an event. */
export class Dispatcher {
  readonly #commands = new Map<string, Handler<IncomingCommand>>();
  readonly #callbacks = new Map<string, Handler<IncomingCallback>>();
  #message: Handler<IncomingMessage> = () => [];
  #unknown: Handler<IncomingCommand> = () => [];

  register(kind: "message", handler: Registered["message"]): void;
  register(kind: "unknown_command", handler: Registered["command"]): void;
  register(kind: "command", name: string, handler: Registered["command"]): void;
  register(kind: "callback", action: IncomingCallback["action"], handler: Registered["callback"]): void;
  register(kind: Incoming["kind"] | "unknown_command", ...rest: [unknown, unknown?]): void {
    if (kind === "message") this.#message = rest[0] as Registered["message"];
    else if (kind === "unknown_command") this.#unknown = rest[0] as Registered["command"];
    else if (kind === "command") this.#commands.set(rest[0] as string, rest[1] as Registered["command"]);
    else this.#callbacks.set(rest[0] as string, rest[1] as Registered["callback"]);
  }

  dispatch(event: Incoming, context: HandlerContext): Outgoing[] {
    switch (event.kind) {
      case "message":
        return this.#message(event, context);
      case "callback":
        return this.#callbacks.get(event.action)?.(event, context) ?? [];
      case "command":
        return (this.#commands.get(event.name) ?? this.#unknown)(event, context);
    }
    return event satisfies never;
  }
}
