import type { ActionType } from "../domain/action-type.ts";
import type { ActionDefinition } from "./action-definition.ts";
import { answer } from "./types/answer.ts";
import { create } from "./types/create.ts";
import { destroy } from "./types/destroy.ts";
import { drop } from "./types/drop.ts";
import { fork } from "./types/fork.ts";
import { input } from "./types/input.ts";
import { interrupt } from "./types/interrupt.ts";
import { join } from "./types/join.ts";
import { pause } from "./types/pause.ts";
import { resume } from "./types/resume.ts";

export const ACTIONS: Readonly<Record<ActionType, ActionDefinition>> = {
  agent_create: create,
  agent_pause: pause,
  agent_resume: resume,
  agent_destroy: destroy,
  agent_interrupt: interrupt,
  agent_input: input,
  agent_fork: fork,
  agent_answer: answer,
  agent_join: join,
  agent_drop: drop,
};
