import { postgresHome } from "../postgres-server.ts";
import { runtimePromises } from "./runtime-promises.ts";

runtimePromises("postgres", postgresHome);
