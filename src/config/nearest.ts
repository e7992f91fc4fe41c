/**
 * Finds the name that was probably meant, for "did you mean". Knows nothing of settings.
 */

/** The candidate that `name` is most likely a misspelling of, or undefined when none is near. */
export function nearest<T extends string>(name: string, candidates: Iterable<T>): T | undefined {
  const wanted = fold(name);
  // One slip in four characters is a slip; more is another word. Past any candidate's length nothing can be near.
  const limit = Math.min(3, Math.floor(wanted.length / 4));
  let best: T | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const folded = fold(candidate);
    if (Math.abs(folded.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, folded);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Letter case and word separators are how most misspellings differ. */
function fold(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '');
}

/** Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`. */
function editDistance(a: string, b: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = at(last, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row.push(
        Math.min(at(last, j) + 1, at(row, j - 1) + 1, substitution, swapped ? at(beforeLast, j - 2) + 1 : Infinity),
      );
    }
    beforeLast = last;
    last = row;
  }
  return at(last, b.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] ?? Infinity;
}
