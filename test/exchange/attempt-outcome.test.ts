/** What the end of an attempt is called, and whether it was the sidecar's own doing. */
import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../src/platform/errors.ts';
import { classifyAttempt, labelFailure, isLocalEnd } from '../../src/exchange/attempt-outcome.ts';
import type { AttemptResult } from '../../src/upstream/attempt-contract.ts';
import {
  abortedFailure,
  classifyConnectError,
  classifyExchangeError,
  timeoutFailure,
} from '../../src/upstream/failure.ts';

const withCode = (code: string): Error => Object.assign(new Error(code), { code });
const LATE = { kind: 'deadline' } as const;
const LEFT = { kind: 'client-left' } as const;
const DRAINED = { kind: 'failed', error: new SidecarError('DRAINING', 'no more') } as const;
const NOT_SENDABLE = classifyConnectError(withCode('UND_ERR_INVALID_ARG'));

it.each([
  ['a client that left', abortedFailure(), LEFT, 'client_left', true],
  ['the drain', abortedFailure(), DRAINED, 'reset', true],
  ['a request that cannot be put into HTTP', NOT_SENDABLE, undefined, 'reset', true],
  ['a deadline that the upstream let pass', abortedFailure(), LATE, 'timeout', false],
  ['an upstream that did not answer', timeoutFailure(1000), undefined, 'timeout', false],
  ['an upstream that did not answer before the deadline, either', timeoutFailure(1000), LATE, 'timeout', false],
  ['a connection that broke', classifyExchangeError(withCode('ECONNRESET')), undefined, 'reset', false],
  ['one that broke when the deadline had passed', classifyExchangeError(withCode('ECONNRESET')), LATE, 'reset', false],
  ['no HTTP', classifyExchangeError(withCode('HPE_INVALID_CONSTANT')), undefined, 'reset', false],
  ['nobody there', classifyConnectError(withCode('ECONNREFUSED')), undefined, 'unreachable', false],
])('%s', (_, failure, why, outcome, isOwn) => {
  expect(labelFailure(failure, why)).toBe(outcome);
  expect(isLocalEnd(failure, why)).toBe(isOwn);
  expect(classifyAttempt({ kind: 'failed', failure }, undefined, why)).toEqual({ outcome, isOwn });
});

describe('an attempt whose head has come', () => {
  const head = { status: 200, statusText: 'OK', headers: [] };
  const relayed = (cutBy?: 'upstream' | 'sidecar'): AttemptResult => ({
    ...{ kind: 'relayed', head },
    fault: cutBy === undefined ? undefined : { detail: 'it broke', cutBy },
  });
  const held = (fault?: string): AttemptResult => ({ kind: 'held', response: { head, body: Buffer.alloc(0), fault } });
  const failed: AttemptResult = { kind: 'failed', failure: classifyExchangeError(withCode('ECONNRESET')) };

  it.each([
    ['and whose body is whole', relayed(), undefined, 'error_status', false],
    ['and whose body is whole, although the client has left', relayed(), LEFT, 'error_status', false],
    ['and whose body is held', held(), undefined, 'error_status', false],
    ['and that then broke off', relayed('upstream'), undefined, 'cut', false],
    ['and that broke off while it was held', held('it broke'), undefined, 'cut', false],
    ['and that broke off before the client had any of it', failed, undefined, 'cut', false],
    ['and that the drain cut', relayed('sidecar'), DRAINED, 'cut', true],
    ['and whose client left', relayed('sidecar'), LEFT, 'client_left', true],
    [
      'and whose client left while it was held',
      { kind: 'failed', failure: abortedFailure() },
      LEFT,
      'client_left',
      true,
    ],
  ] as const)('%s', (_, end, why, outcome, isOwn) => {
    expect(classifyAttempt(end, 'error_status', why)).toEqual({ outcome, isOwn });
    expect(classifyAttempt(end, 'ok', why)).toEqual({ outcome: outcome === 'error_status' ? 'ok' : outcome, isOwn });
    // A refusal is known from its head.
    const refused = outcome === 'client_left' ? outcome : 'rate_limited';
    expect(classifyAttempt(end, 'rate_limited', why)).toEqual({ outcome: refused, isOwn });
  });
});
