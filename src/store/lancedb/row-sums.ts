import { crc32 } from "node:zlib";

/**
 * SQLite does not notice a byte that a bad disk or a bad copy changed, so every row of the journal has a checksum: of its text
 * and of the numbers that the journal gave it. The text's own is the one that goes with the row into LanceDB, so that moving a
 * row computes it once. All are signed, which SQLite stores in four bytes.
 */
export const sumOfText = (row: string): number => crc32(row);

export const sumOfRow = (row: string, pos: number, number: number): number => placedSum(crc32(row), pos, number);

/** From the text's checksum. An odd factor lets no changed bit cancel out; positions may be beyond 32 bits. */
export const placedSum = (text: number, pos: number, number: number): number =>
  (text + Math.imul(pos, 0x9e3779b1) + Math.floor(pos / 2 ** 32) + Math.imul(number, 0x85ebca6b)) | 0;

export const sumOfDocuments = (session_id: string, params: string, context: string | null): number =>
  crc32(context ?? "\u0000", crc32(params, crc32(session_id))) | 0;

/** Of a row that is only its key, or a few values: it is not stored, only added up. */
export const sumOfValues = (...values: readonly (string | number | null)[]): number => crc32(values.join("\u0000")) | 0;
