/** Where an event came from. `sent_at` is the homeserver's time, in milliseconds. */
export type Origin = { event_id: string; room_id: string; user_id: string; sent_at: number };

/** What a person said. */
export type IncomingMessage = Origin & {
  kind: "message";
  text: string;
  /** Whether it names the bot. */
  is_addressed: boolean;
  /** The event that it answers, and what that said where the client tells. */
  replied_to: string | null;
  quoted: string | null;
  /** False for pictures, files and sounds. */
  is_text: boolean;
};

/** What a person said that begins with `!word`. */
export type IncomingCommand = Omit<IncomingMessage, "kind"> & { kind: "command"; name: string; argument: string };

/** What a person did to an earlier message: a yes or no as a reaction, or new words for it. */
export type IncomingCallback = Origin & { kind: "callback"; target: string } & (
    | { action: "confirm"; answer: "yes" | "no" }
    | { action: "edit"; text: string }
  );

export type Incoming = IncomingMessage | IncomingCommand | IncomingCallback;
