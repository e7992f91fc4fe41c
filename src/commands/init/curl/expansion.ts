/** How a variable or a command substitution stays in a word that is not expanded: its name between two noncharacters. Pure. */

/** No pasted text holds them, since such a text is refused. */
const [OPEN, CLOSE] = ['\uFDD0', '\uFDD1'] as const;
const MARKED = new RegExp(`${OPEN}([^${CLOSE}]*)${CLOSE}`, 'g');

/** The mark of a variable; '' for a command substitution. */
export function markExpansion(name: string): string {
  return OPEN + name + CLOSE;
}

/** Whether a word has a variable or a command substitution in it. */
export function hasExpansion(word: string): boolean {
  return word.includes(OPEN);
}

/** The word with each expansion as it may be shown: `$NAME`, and `$(…)` for a command. */
export function showExpansions(word: string): string {
  return word.replaceAll(MARKED, (_, name: string) => (name === '' ? '$(…)' : `$${name}`));
}

/** The word with the expansions of known variables replaced. */
export function expandVariables(word: string, values: ReadonlyMap<string, string>): string {
  return word.replaceAll(MARKED, (mark, name: string) => values.get(name) ?? mark);
}
