/** True in `npm run soak`. */
export const IS_LONG_RUN = process.env.LONG_TESTS === 'true';

/**
 * How many inputs a test generates: fewer in `npm test`, which developers wait for, and more in `npm run soak:rounds`, where time does not
 * matter.
 */
export function roundsOf(counts: { readonly check: number; readonly soak: number }): number {
  return IS_LONG_RUN ? counts.soak : counts.check;
}

/** Seeds of generators of random numbers, 1, 2, …, as many as `roundsOf` says. */
export function seedsOf(counts: { readonly check: number; readonly soak: number }): number[] {
  return Array.from({ length: roundsOf(counts) }, (_, index) => index + 1);
}

/** Of a property whose inputs meet real connections: an input that hangs fails, and is shown. No input takes a fraction of this. */
export const FAILS_WHEN_HANGING = { timeout: 120_000, endOnFailure: true };
