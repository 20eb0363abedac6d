/** Parses a URL or request target. Never throws: null if it is invalid. */
export const parseUrl = (text: string, base?: string): URL | null => URL.parse(text, base);
