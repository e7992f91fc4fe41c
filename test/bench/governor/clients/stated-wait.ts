/** Retry-After as the clients here read it that have no reader of their own. */
import type { SimulatedResponse } from '../client.ts';

/** @returns milliseconds, or undefined when nothing is stated */
export function readStatedWaitMs(answer: SimulatedResponse, wallNow: number): number | undefined {
  const value = answer.headers['retry-after'];
  if (value === undefined) return undefined;
  return /^\d+$/.test(value) ? Number(value) * 1000 : Math.max(0, Date.parse(value) - wallNow);
}
