import { postgresHome } from "../postgres-server.ts";
import { crash } from "./promises/crash.ts";

crash("postgres", postgresHome);
