/** The exports of `everstep/moniker`, for monikers outside this repository. */
export { z } from "zod";
export type { StepCall } from "../domain/step.ts";
export type { FrameIn, FrameOut } from "../domain/step-frame.ts";
export { defineTool, type OwnTool, type ToolContext } from "../tools/define-tool.ts";
export { guidanceText } from "./guidance.ts";
export { defineMoniker, type Moniker, type StepContext, StepError, type StepProgress } from "./moniker.ts";
