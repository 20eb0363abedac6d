import { test } from "node:test";
import { onPostgres, postgresHome } from "../postgres-server.ts";
import { crash } from "./promises/crash.ts";

// What a killed process leaves behind is tested with workers in test/cluster; this is the same at length.
if (process.env["EVERSTEP_TEST_ALL"] === "1") await onPostgres(() => crash("postgres", postgresHome));
else
  test("the long crash test on PostgreSQL", { skip: "it takes half a minute; EVERSTEP_TEST_ALL=1 runs it" }, () => {});
