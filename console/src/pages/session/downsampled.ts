/** Keeps the highest value of each bucket, so that no peak is lost. */
export function downsampled<Row>(
  rows: readonly Row[],
  xOf: (row: Row) => number,
  yOf: (row: Row) => number,
  most: number,
): { xs: number[]; ys: number[] } {
  const size = Math.max(1, Math.ceil(rows.length / most));
  const xs: number[] = [];
  const ys: number[] = [];
  for (let start = 0; start < rows.length; start += size) {
    const stretch = rows.slice(start, start + size);
    const highest = stretch.reduce((best, row) => (yOf(row) > yOf(best) ? row : best));
    xs.push(xOf(highest));
    ys.push(yOf(highest));
  }
  return { xs, ys };
}
