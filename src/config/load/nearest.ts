/** Finds the name that was probably meant, for "did you mean". */
import { distance } from 'fastest-levenshtein';

/** The candidate that `name` most likely misspells; undefined when none is near. */
export function findNearest<T extends string>(name: string, candidates: Iterable<T>): T | undefined {
  const wanted = normalizeName(name);
  // One error in four characters is a misspelling; more is another word.
  const limit = Math.min(3, Math.floor(wanted.length / 4));
  let best: T | undefined;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    const folded = normalizeName(candidate);
    if (Math.abs(folded.length - wanted.length) >= bestDistance) continue;
    const distance = editDistance(wanted, folded);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Most misspellings differ in letter case and word separators only. */
function normalizeName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_]/g, '');
}

/** Insertions, deletions and substitutions that turn `a` into `b`; one swap of neighbours counts as one. */
function editDistance(a: string, b: string): number {
  const swapNeighbours = (at: number): string => a.slice(0, at) + a.charAt(at + 1) + a.charAt(at) + a.slice(at + 2);
  const swapped = Array.from({ length: Math.max(0, a.length - 1) }, (_, at) => 1 + distance(swapNeighbours(at), b));
  return Math.min(distance(a, b), ...swapped);
}
