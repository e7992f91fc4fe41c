/** What the end of an attempt is called, and whether it was the sidecar's own doing. */
import { describe, expect, it } from 'vitest';
import { SidecarError } from '../../src/platform/errors.ts';
import { endOf, failureOutcome, isOwnEnd } from '../../src/exchange/attempt-outcome.ts';
import type { AttemptEnd } from '../../src/upstream/attempt-terms.ts';
import {
  abortedFailure,
  describeConnectFailure,
  describeExchangeFailure,
  timeoutFailure,
} from '../../src/upstream/failure.ts';

const withCode = (code: string): Error => Object.assign(new Error(code), { code });
const LATE = { kind: 'deadline' } as const;
const LEFT = { kind: 'client-left' } as const;
const DRAINED = { kind: 'failed', error: new SidecarError('DRAINING', 'no more') } as const;
const NOT_SENDABLE = describeConnectFailure(withCode('UND_ERR_INVALID_ARG'));

it.each([
  ['a client that left', abortedFailure(), LEFT, 'client_left', true],
  ['the drain', abortedFailure(), DRAINED, 'reset', true],
  ['a request that cannot be put into HTTP', NOT_SENDABLE, undefined, 'reset', true],
  ['a deadline that the upstream let pass', abortedFailure(), LATE, 'timeout', false],
  ['an upstream that did not answer', timeoutFailure(1000), undefined, 'timeout', false],
  ['an upstream that did not answer before the deadline, either', timeoutFailure(1000), LATE, 'timeout', false],
  ['a connection that broke', describeExchangeFailure(withCode('ECONNRESET')), undefined, 'reset', false],
  [
    'one that broke when the deadline had passed',
    describeExchangeFailure(withCode('ECONNRESET')),
    LATE,
    'reset',
    false,
  ],
  ['no HTTP', describeExchangeFailure(withCode('HPE_INVALID_CONSTANT')), undefined, 'reset', false],
  ['nobody there', describeConnectFailure(withCode('ECONNREFUSED')), undefined, 'unreachable', false],
])('%s', (_, failure, why, outcome, isOwn) => {
  expect(failureOutcome(failure, why)).toBe(outcome);
  expect(isOwnEnd(failure, why)).toBe(isOwn);
  expect(endOf({ kind: 'failed', failure }, undefined, why)).toEqual({ outcome, isOwn });
});

describe('an attempt whose head has come', () => {
  const head = { status: 200, statusText: 'OK', fields: [] };
  const relayed = (cutBy?: 'upstream' | 'sidecar'): AttemptEnd => ({
    ...{ kind: 'relayed', head },
    fault: cutBy === undefined ? undefined : { detail: 'it broke', cutBy },
  });
  const held = (fault?: string): AttemptEnd => ({ kind: 'held', answer: { head, body: Buffer.alloc(0), fault } });
  const failed: AttemptEnd = { kind: 'failed', failure: describeExchangeFailure(withCode('ECONNRESET')) };

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
    expect(endOf(end, 'error_status', why)).toEqual({ outcome, isOwn });
    expect(endOf(end, 'ok', why)).toEqual({ outcome: outcome === 'error_status' ? 'ok' : outcome, isOwn });
    // A refusal is known from its head.
    const refused = outcome === 'client_left' ? outcome : 'rate_limited';
    expect(endOf(end, 'rate_limited', why)).toEqual({ outcome: refused, isOwn });
  });
});
