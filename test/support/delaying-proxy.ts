/** A delaying relay for one test, with which it ends. */
import { onTestFinished } from 'vitest';
import { startDelayingRelay, type DelayingRelay } from './delaying-relay.ts';

export async function startDelayingProxy(targetPort: number, roundTripMs: number): Promise<DelayingRelay> {
  const relay = await startDelayingRelay(targetPort, roundTripMs);
  onTestFinished(() => relay[Symbol.asyncDispose]());
  return relay;
}
