import { onPostgres, postgresHome } from "../postgres-server.ts";
import { crash } from "./promises/crash.ts";

await onPostgres(() => crash("postgres", postgresHome));
