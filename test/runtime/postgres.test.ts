import { onPostgres, postgresHome } from "../postgres-server.ts";
import { runtimePromises } from "./runtime-promises.ts";

await onPostgres(() => runtimePromises("postgres", postgresHome));
