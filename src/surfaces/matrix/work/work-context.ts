import type { Logger } from "pino";
import { type Catalogue, catalogue } from "../catalogue/catalogue.ts";
import { contentsOf } from "../outgoing/contents.ts";
import type { PlatformClient } from "../platform/platform-client.ts";
import type { BotState } from "../state/bot-state.ts";
import type { Job } from "../state/jobs.ts";
import type { Homeserver } from "../transport/homeserver.ts";
import type { Sender } from "../transport/sender.ts";

/** What jobs are done with. */
export type WorkContext = {
  state: BotState;
  platform: PlatformClient;
  homeserver: Homeserver;
  sender: Sender;
  user_id: string;
  log: Logger;
};

export const wordsFor = ({ state }: WorkContext, { user_id }: Pick<Job, "user_id">): Catalogue =>
  catalogue(state.people.settings(user_id).language);

/** Ends a job: what it brought and what is said about it are one transaction. */
export function finish(context: WorkContext, job: Job, text: string | null, also: () => void = () => {}): void {
  const { state, sender } = context;
  state.transaction(() => {
    also();
    if (text !== null)
      for (const content of contentsOf(text, { is_notice: true })) state.outbox.add(job.room_id, content);
    state.jobs.done(job.position);
  });
  sender.wake();
}
