/** What the end of an attempt that brought no answer is called, and whether it was the sidecar's own doing. */
import { expect, it } from 'vitest';
import { failureOutcome, isOwnEnd } from '../../src/exchange/attempt-outcome.ts';
import {
  abortedFailure,
  describeConnectFailure,
  describeExchangeFailure,
  timeoutFailure,
} from '../../src/upstream/failure.ts';

const withCode = (code: string): Error => Object.assign(new Error(code), { code });

it.each([
  ['a client that left, or the drain', abortedFailure(), false, 'reset', true],
  [
    'a request that cannot be put into HTTP',
    describeConnectFailure(withCode('UND_ERR_INVALID_ARG')),
    false,
    'reset',
    true,
  ],
  ['a deadline that the upstream let pass', abortedFailure(), true, 'timeout', false],
  ['an upstream that did not answer', timeoutFailure(1000), false, 'timeout', false],
  ['an upstream that did not answer before the deadline, either', timeoutFailure(1000), true, 'timeout', false],
  ['a connection that broke', describeExchangeFailure(withCode('ECONNRESET')), false, 'reset', false],
  [
    'one that broke when the deadline had passed',
    describeExchangeFailure(withCode('ECONNRESET')),
    true,
    'reset',
    false,
  ],
  ['no HTTP', describeExchangeFailure(withCode('HPE_INVALID_CONSTANT')), false, 'reset', false],
  ['nobody there', describeConnectFailure(withCode('ECONNREFUSED')), false, 'unreachable', false],
])('%s', (_, failure, isPastDeadline, outcome, isOwn) => {
  expect(failureOutcome(failure, isPastDeadline)).toBe(outcome);
  expect(isOwnEnd(failure, isPastDeadline)).toBe(isOwn);
});
