import { onPostgres, postgresHome } from "../postgres-server.ts";
import { IS_LONG } from "../repetitions.ts";
import { promisesOnAnyStore, runtimePromises } from "./runtime-promises.ts";

await onPostgres(() => {
  runtimePromises("postgres", postgresHome);
  if (IS_LONG) promisesOnAnyStore("postgres", postgresHome);
});
