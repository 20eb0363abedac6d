/** The session that `logs -f` followed ended as `error`. */
export const FOLLOWED_FAILED = 3;

export const EXIT_CODES = `
Exit codes:
  0  it was done
  1  it was refused, it failed, or no server answers; for replay: something differs
  2  it was called wrongly
  3  the session that logs -f followed failed`;
