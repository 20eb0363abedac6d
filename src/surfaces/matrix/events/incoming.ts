/** Where an event came from. `sent_at` is the homeserver's time, in milliseconds. */
export type Origin = {
  event_id: string;
  room_id: string;
  user_id: string;
  sent_at: number;
  /** The first event of its thread. */
  thread: string | null;
  /** The thread's own session; null for the chat that everyone shares. */
  chat: string | null;
};

/** What a person said. */
export type IncomingMessage = Origin & {
  kind: "message";
  text: string;
  /** Whether it addresses the bot by name. */
  is_addressed: boolean;
  /** The event it replies to, and that event's text if the client quotes it. */
  replied_to: string | null;
  quoted: string | null;
  /** False for pictures, files and audio. */
  is_text: boolean;
};

/** A message that begins with `!word`. */
export type IncomingCommand = Omit<IncomingMessage, "kind"> & { kind: "command"; name: string; argument: string };

/** What a person did to an earlier message: reacted with a yes, a no or a number, or edited it. */
export type IncomingCallback = Origin & { kind: "callback"; target: string } & (
    | { action: "confirm"; answer: "yes" | "no" | number }
    | { action: "edit"; text: string }
  );

export type Incoming = IncomingMessage | IncomingCommand | IncomingCallback;
