/** Retry-After, for clients without their own reader. */
import type { SimulatedResponse } from '../client.ts';

/** @returns milliseconds, or undefined when nothing is stated */
export function readStatedWaitMs(response: SimulatedResponse, wallNow: number): number | undefined {
  const value = response.headers['retry-after'];
  if (value === undefined) return undefined;
  return /^\d+$/.test(value) ? Number(value) * 1000 : Math.max(0, Date.parse(value) - wallNow);
}
