import { z } from "zod";

/**
 * Every action type. A type that carries guidance gives a step something to read: its receipt ends as `consumed` or `bounced`.
 * The behaviour of each type is in `src/actions/`, whose table does not compile if a type is missing.
 */
const TYPES = {
  agent_create: { carries_guidance: false },
  agent_pause: { carries_guidance: false },
  agent_resume: { carries_guidance: false },
  agent_interrupt: { carries_guidance: true },
  agent_input: { carries_guidance: true },
  agent_destroy: { carries_guidance: false },
  agent_fork: { carries_guidance: false },
  agent_answer: { carries_guidance: true },
  agent_join: { carries_guidance: false },
  agent_drop: { carries_guidance: false },
} as const;

export type ActionType = keyof typeof TYPES;
export const ACTION_TYPES = Object.keys(TYPES) as ActionType[];
export const actionTypeSchema = z.enum(ACTION_TYPES);

export const GUIDANCE_TYPES: ReadonlySet<ActionType> = new Set(
  ACTION_TYPES.filter((type) => TYPES[type].carries_guidance),
);
export const carriesGuidance = ({ action_type }: { action_type: ActionType }): boolean =>
  GUIDANCE_TYPES.has(action_type);
