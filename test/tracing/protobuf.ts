/** A field of a protocol buffers message: its number, and a number or bytes by its wire type. */
type Field = { number: number; value: bigint | Buffer };

/** Reads the fields of one message, without interpreting them. */
export function* fieldsOf(message: Buffer): Generator<Field> {
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const key = Number(varint());
    const wire = key & 7;
    const number = key >> 3;
    if (wire === 0) yield { number, value: varint() };
    else {
      const bytes = wire === 1 ? 8 : wire === 5 ? 4 : wire === 2 ? Number(varint()) : Number.NaN;
      if (Number.isNaN(bytes) || at + bytes > message.length) throw new Error(`wire type ${wire} at ${at} is broken`);
      yield { number, value: message.subarray(at, at + bytes) };
      at += bytes;
    }
  }
}

/** A message by field number, each with a list of values. */
export class Fields {
  readonly #values = new Map<number, (bigint | Buffer)[]>();

  constructor(message: Buffer) {
    for (const { number, value } of fieldsOf(message))
      this.#values.set(number, [...(this.#values.get(number) ?? []), value]);
  }

  has = (number: number): boolean => this.#values.has(number);
  messages = (number: number): Buffer[] => (this.#values.get(number) ?? []).filter((value) => Buffer.isBuffer(value));
  bytes = (number: number): Buffer => this.messages(number)[0] ?? Buffer.alloc(0);
  text = (number: number): string => this.bytes(number).toString("utf8");
  hex = (number: number): string => this.bytes(number).toString("hex");
  int(number: number): number {
    const value = this.#values.get(number)?.[0] ?? 0n;
    return typeof value === "bigint" ? Number(BigInt.asIntN(64, value)) : Number(value.readBigUInt64LE());
  }
  double = (number: number): number => this.bytes(number).readDoubleLE();
}
