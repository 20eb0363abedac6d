/** Sent to a chat whose answer is no longer wanted. The chat replies without calling its model. */
export const STOP_PROMPT = "Stop here: the person does not want this answer any more. Reply only with: Stopped.";
