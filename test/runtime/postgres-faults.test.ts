import { onPostgres, postgresHome } from "../postgres-server.ts";
import { IS_LONG } from "../repetitions.ts";
import { faultsOnAnyStore, runtimeUnderFaults } from "./runtime-promises.ts";

await onPostgres(() => {
  runtimeUnderFaults("postgres", postgresHome);
  if (IS_LONG) faultsOnAnyStore("postgres", postgresHome);
});
