import { describe } from "node:test";
import { asking } from "./promises/asking.ts";
import { attempts } from "./promises/attempts.ts";
import { builtIn } from "./promises/builtin.ts";
import { children, childrenUnderKills } from "./promises/children.ts";
import { creation } from "./promises/creation.ts";
import { crowds } from "./promises/crowds.ts";
import { destroying } from "./promises/destroying.ts";
import { dropping } from "./promises/dropping.ts";
import { errors } from "./promises/errors.ts";
import { events } from "./promises/events.ts";
import { forks } from "./promises/forks.ts";
import { frames } from "./promises/frames.ts";
import { guidance } from "./promises/guidance.ts";
import { guidanceEnds } from "./promises/guidance-ends.ts";
import { guidanceFlood } from "./promises/guidance-flood.ts";
import { guidanceNow } from "./promises/guidance-now.ts";
import { holding } from "./promises/holding.ts";
import { kills } from "./promises/kills.ts";
import { kinds } from "./promises/kinds.ts";
import { limits } from "./promises/limits.ts";
import { once, onceUnderKills } from "./promises/once.ts";
import { order } from "./promises/order.ts";
import { outages } from "./promises/outages.ts";
import { pausing } from "./promises/pausing.ts";
import { rehydration } from "./promises/rehydration.ts";
import { schedules } from "./promises/schedules.ts";
import { shutdown } from "./promises/shutdown.ts";
import { spending } from "./promises/spending.ts";
import { statusMachine } from "./promises/status-machine.ts";
import { storeOutages } from "./promises/store-outages.ts";
import { storeRefusals } from "./promises/store-refusals.ts";
import { submission } from "./promises/submit.ts";
import { transcripts } from "./promises/transcripts.ts";
import { versions } from "./promises/versions.ts";
import { waiting } from "./promises/waiting.ts";
import type { MakeHome } from "./runtime-fixture.ts";

const PROMISES = [
  submission,
  creation,
  order,
  pausing,
  guidance,
  guidanceNow,
  guidanceEnds,
  dropping,
  waiting,
  asking,
  once,
  children,
  holding,
  frames,
  destroying,
  forks,
  transcripts,
  events,
];

/** The store only keeps rows in these, which its conformance suite covers: one engine is enough. */
const ON_ANY_STORE = [kinds, limits, errors, attempts, spending, outages, statusMachine, versions, builtIn];

/** Each opens its own stores, or starts processes. */
const UNDER_FAULTS = [guidanceFlood, onceUnderKills, childrenUnderKills, rehydration, shutdown, crowds, kills];

/** Any store is made to fail by the same wrapper, and a schedule only keeps rows in it: one engine is enough. */
const UNDER_FAULTS_ON_ANY_STORE = [storeOutages, storeRefusals, schedules];

/** What the runtime promises, on any engine: pass a function that creates an empty home for a store. */
export function runtimePromises(name: string, makeHome: MakeHome): void {
  describe(`the runtime on ${name}`, () => {
    for (const promises of PROMISES) promises(makeHome);
  });
}

/** What it promises regardless of the store. */
export function promisesOnAnyStore(name: string, makeHome: MakeHome): void {
  describe(`the runtime on ${name}`, () => {
    for (const promises of ON_ANY_STORE) promises(makeHome);
  });
}

/** What it promises when it is stopped, killed or overloaded, or when its store fails. */
export function runtimeUnderFaults(name: string, makeHome: MakeHome): void {
  describe(`the runtime on ${name} under faults`, () => {
    for (const promises of UNDER_FAULTS) promises(makeHome);
  });
}

/** What it promises under faults regardless of the store. */
export function faultsOnAnyStore(name: string, makeHome: MakeHome): void {
  describe(`the runtime on ${name} under faults`, () => {
    for (const promises of UNDER_FAULTS_ON_ANY_STORE) promises(makeHome);
  });
}
