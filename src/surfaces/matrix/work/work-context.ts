import type { Logger } from "pino";
import { type Catalogue, catalogue } from "../catalogue/catalogue.ts";
import { plainNotice, reasonOf } from "../outgoing/plain-notice.ts";
import { splitContent } from "../outgoing/split-content.ts";
import type { PlatformClient } from "../platform/platform-client.ts";
import type { BotState } from "../state/bot-state.ts";
import type { Job } from "../state/jobs.ts";
import type { Homeserver } from "../transport/homeserver.ts";
import type { Sender } from "../transport/sender.ts";

/** What jobs work with. */
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

/** Ends a job that cannot be done, so that the next ones can run: its room is told, and the reason is stored. */
export function setAside(context: WorkContext, job: Job, error: unknown): void {
  const { state, sender, log } = context;
  const reason = reasonOf(error);
  log.error(
    { err: error, kind: job.task.kind, event_id: job.event_id },
    "a job failed several times and was set aside",
  );
  state.transaction(() => {
    const content = plainNotice(wordsFor(context, job).set_aside(reason), job.event_id);
    state.outbox.add(job.room_id, content, { thread: job.thread });
    state.jobs.setAside(job.position, reason);
  });
  sender.wake();
}

/** Ends a job: its result and what is said about it are one transaction. */
export function finish(context: WorkContext, job: Job, text: string | null, also: () => void = () => {}): void {
  const { state, sender } = context;
  state.transaction(() => {
    also();
    if (text !== null)
      for (const content of splitContent(text, { is_notice: true }))
        state.outbox.add(job.room_id, content, { thread: job.thread });
    state.jobs.done(job.position);
  });
  sender.wake();
}
