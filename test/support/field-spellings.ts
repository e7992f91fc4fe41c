/** The spellings of a header field's name that receivers may take for the same. */
import fc from 'fast-check';

/** In lower case, with underscores read as hyphens. */
export function canonicalize(name: string): string {
  return name.toLowerCase().replaceAll('_', '-');
}

/** Each letter in either case, and each hyphen as an underscore or the other way round. */
export function spellings(name: string): fc.Arbitrary<string> {
  const letters = Array.from({ length: name.length }, (_, at) => {
    const letter = name.charAt(at);
    return /[-_]/.test(letter)
      ? fc.constantFrom('-', '_')
      : fc.constantFrom(letter.toLowerCase(), letter.toUpperCase());
  });
  return fc.tuple(...letters).map((parts) => parts.join(''));
}
