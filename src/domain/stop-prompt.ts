/** Said to a chat whose answer nobody wants any more. The chat answers it without asking its model. */
export const STOP_PROMPT = "Stop here: the person does not want this answer any more. Reply only with: Stopped.";
