/** The session followed by `logs -f` ended as `error`. */
export const FOLLOWED_FAILED = 3;

export const EXIT_CODES = `
Exit codes:
  0  success
  1  refused, failed, or no server answers; for replay: something differs
  2  wrong usage
  3  the session that logs -f followed failed`;
