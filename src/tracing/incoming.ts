import { AsyncLocalStorage } from "node:async_hooks";

const incoming = new AsyncLocalStorage<string | undefined>();

/** Handles a request that carries this `traceparent`. */
export const withIncoming = <Result>(traceparent: string | undefined, work: () => Result): Result =>
  incoming.run(traceparent, work);

/** The `traceparent` of the request being handled, as received. */
export const incomingTraceparent = (): string | undefined => incoming.getStore();
