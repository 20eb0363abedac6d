import { crc32 } from "node:zlib";

/**
 * SQLite does not notice a byte that a bad disk or a bad copy changed, so every row of the journal has a checksum: of its text
 * and of the numbers that the journal gave it. Where a row is only its key, or two values, it is computed from those.
 */
export function sumOfRow(row: string, given: readonly number[]): number {
  let seed = 0;
  for (const number of given) seed = (seed * 31 + number) >>> 0;
  return crc32(row, seed);
}

export const sumOfDocuments = (params: string, context: string | null): number =>
  crc32(context ?? "\u0000", crc32(params));

export const sumOfValues = (...values: readonly (string | number)[]): number => crc32(values.join("\u0000"));
