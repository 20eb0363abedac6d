/** The words of a text as search compares them: lower case, without diacritics, in any script (é is e, ё is е). */
export function words(text: string): string[] {
  return (
    text
      .normalize("NFKD")
      .replaceAll(/\p{M}/gu, "")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? []
  );
}
