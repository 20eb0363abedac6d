/** Whether what a session that is tried again waits for is its model's provider, and not a worker or a server of tools. */
export const waitsForProvider = ({ last_error }: { last_error: string }): boolean =>
  /^(?:provider_down|rate_limited): /.test(last_error);
