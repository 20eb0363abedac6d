import { rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { versionOfFolder } from "../src/monikers/own-files.ts";
import { bundle, licensesOf } from "./bundle.ts";
import { writeDeclarations } from "./declarations.ts";
import { exportedEntries, PROGRAM } from "./entries.ts";

/** Makes `dist`, from which the installed package runs: JavaScript, and declarations for those who import it. */
const ROOT = resolve(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");

const exported = exportedEntries();

rmSync(DIST, { recursive: true, force: true });
const monikers_version = await versionOfFolder(join(ROOT, "src/monikers"));
const modules = await bundle({ folder: DIST, entries: [PROGRAM, ...exported], monikers_version });
writeFileSync(join(DIST, "licenses.txt"), licensesOf(modules));
writeDeclarations({ folder: join(DIST, "types"), entries: exported });
