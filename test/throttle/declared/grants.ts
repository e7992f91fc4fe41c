/** Grants and results of calls that took permits of declared limits. */
import type { TakenPermits } from '../../../src/throttle/declared/counted-limit.ts';
import type { CallResult, PermitGrant } from '../../../src/throttle/pacing/gate.ts';

export const ACCEPTED: CallResult = { kind: 'accepted', isCurrent: true, quotas: [], laterCalls: 0 };
export const REFUSED: CallResult = { ...ACCEPTED, kind: 'refused' };

export function grantOf(at: number, declared: TakenPermits): PermitGrant {
  const traits = { isPauseProbe: false, isWaitedFor: false, isLimitProbe: false };
  return { at, serial: 1, epoch: 0, rate: Infinity, inFlight: 0, declared, ...traits };
}
