const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/** A ULID: ten characters of time and sixteen random ones. Without dependencies, to stay small in a browser. */
export function newId(): string {
  const random = crypto.getRandomValues(new Uint8Array(16));
  let time = Date.now();
  let text = "";
  for (let place = 0; place < 10; place += 1) {
    text = `${ALPHABET[time % 32]}${text}`;
    time = Math.floor(time / 32);
  }
  return text + Array.from(random, (byte) => ALPHABET[byte % 32]).join("");
}
