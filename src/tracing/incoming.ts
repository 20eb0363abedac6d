import { AsyncLocalStorage } from "node:async_hooks";

const incoming = new AsyncLocalStorage<string | undefined>();

/** Handles a request that came with this `traceparent`. */
export const withIncoming = <Result>(traceparent: string | undefined, work: () => Result): Result =>
  incoming.run(traceparent, work);

/** The `traceparent` of the request that the running code handles, as it was sent. */
export const incomingTraceparent = (): string | undefined => incoming.getStore();
