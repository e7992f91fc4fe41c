/** Retry-After as the clients here read it that have no reader of their own. */
import type { Answer } from '../client.ts';

/** @returns milliseconds, or undefined when nothing is stated */
export function readStatedWaitMs(answer: Answer, wallNow: number): number | undefined {
  const value = answer.fields['retry-after'];
  if (value === undefined) return undefined;
  return /^\d+$/.test(value) ? Number(value) * 1000 : Math.max(0, Date.parse(value) - wallNow);
}
