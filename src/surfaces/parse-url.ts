/** A URL or a request's target from outside. Never throws: null where it is none. */
export const parseUrl = (text: string, base?: string): URL | null => URL.parse(text, base);
