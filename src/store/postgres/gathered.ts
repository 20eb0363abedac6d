/** Rows that are asked for one by one in the same turn of the event loop are read together. */
export class Gathered<Row> {
  readonly #read: (ids: string[]) => Promise<Map<string, Row>>;
  readonly #ids = new Set<string>();
  #reading: Promise<Map<string, Row>> | undefined;

  constructor(read: (ids: string[]) => Promise<Map<string, Row>>) {
    this.#read = read;
  }

  async get(id: string): Promise<Row | null> {
    this.#ids.add(id);
    this.#reading ??= new Promise(setImmediate).then(() => {
      const ids = [...this.#ids];
      this.#ids.clear();
      this.#reading = undefined;
      return this.#read(ids);
    });
    return (await this.#reading).get(id) ?? null;
  }
}
