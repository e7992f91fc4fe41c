/** Random numbers that are equal on every machine for a seed, and independent between purposes. */
import type { Random } from '../../../src/platform/clock.ts';
import { seeded } from '../../throttle/simulation.ts';

/** One source for each purpose, so that one client's use of random numbers does not change another's network. */
export function createRandom(seed: number, purpose: string): Random {
  let mixed = seed >>> 0;
  for (const letter of purpose) mixed = Math.imul(mixed ^ letter.charCodeAt(0), 0x01000193) >>> 0;
  const random = seeded(mixed);
  // Nearby seeds start alike.
  for (let skipped = 0; skipped < 8; skipped++) random();
  return random;
}
