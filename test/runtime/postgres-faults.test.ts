import { onPostgres, postgresHome } from "../postgres-server.ts";
import { runtimeUnderFaults } from "./runtime-promises.ts";

await onPostgres(() => runtimeUnderFaults("postgres", postgresHome));
