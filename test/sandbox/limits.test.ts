/** The limits of the simulated API: each kind beside a plain count of the calls, and what a refusal says. */
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { createLimiter, type SandboxLimit } from '../../src/sandbox/limits.ts';
import { roundsOf } from '../support/rounds.ts';
import { closeStarted, Partner } from './partner.ts';

const EPOCH_MS = Date.UTC(2026, 10, 30, 23, 59, 50);

afterEach(closeStarted);

/** How many of the calls that were let in at `earlier` a limit still counts at `at`. */
type CountCalls = (earlier: readonly number[], at: number) => number;

const sliding: CountCalls = (earlier, at) => earlier.filter((one) => one + 10_000 > at).length;
const calendar: CountCalls = (earlier, at) =>
  earlier.filter((one) => Math.floor(one / 10_000) === Math.floor(at / 10_000)).length;
const month: CountCalls = (earlier, at) =>
  earlier.filter((one) => new Date(one).getUTCMonth() === new Date(at).getUTCMonth()).length;
const fixed: CountCalls = (earlier, at) => {
  let [began, calls] = [-Infinity, 0];
  for (const one of earlier) [began, calls] = one >= began + 10_000 ? [one, 1] : [began, calls + 1];
  return at >= began + 10_000 ? 0 : calls;
};
const bucket: CountCalls = (earlier, at) => {
  let [level, since] = [3, -Infinity];
  for (const one of earlier) [level, since] = [Math.min(3, level + (one - since) / 1000) - 1, one];
  return 3 - Math.floor(Math.min(3, level + (at - since) / 1000) + 1e-9);
};

test.each<[string, SandboxLimit, CountCalls]>([
  ['sliding', { calls: 3, per: '10s' }, sliding],
  ['fixed', { calls: 3, per: '10s', window: 'fixed' }, fixed],
  ['calendar', { calls: 3, per: '10s', window: 'calendar' }, calendar],
  ['calendar month', { calls: 3, per: '1mo', window: 'calendar' }, month],
  ['bucket', { calls: 3, per: '3s', window: 'bucket' }, bucket],
])(
  '%s: lets in exactly as many calls as a plain count allows, and its Retry-After is never too short',
  (_name, limit, countCalls) => {
    const gaps = fc.array(
      fc.integer({ min: 0, max: 4000 }).map((gap) => (gap > 3000 ? 0 : gap)),
      { maxLength: 60 },
    );
    const check = fc.property(gaps, (waits) => {
      const limiter = createLimiter([limit]);
      const passed: number[] = [];
      let [at, promisedAt] = [EPOCH_MS, Infinity];
      for (const wait of waits) {
        at += wait;
        const { refusal, headers } = limiter(at, 'GET', '/');
        expect(refusal, String(at)).toBe(countCalls(passed, at) < 3 ? undefined : 429);
        if (refusal === undefined) {
          passed.push(at);
          promisedAt = Infinity;
        } else {
          expect(at).toBeLessThan(promisedAt);
          promisedAt = at + Number(headers['retry-after']) * 1000;
          expect(countCalls(passed, promisedAt)).toBeLessThan(3);
        }
      }
    });
    fc.assert(check, { numRuns: roundsOf({ check: 200, soak: 5000 }) });
  },
);

test('calls in flight keep their place until they end, and a call that is refused by one limit takes none of another', () => {
  const limiter = createLimiter([
    { calls: 2, window: 'inFlight', status: 503, retryAfter: 'none' },
    { calls: 3, per: '1h' },
  ]);
  const call = () => limiter(EPOCH_MS, 'GET', '/');
  const [first, second] = [call(), call()];
  expect([first, second, call(), call()].map(({ refusal }) => refusal)).toEqual([undefined, undefined, 503, 503]);
  expect(call().headers).toEqual({});
  first.release();
  expect(call().refusal).toBeUndefined();
  second.release();
  expect(call().refusal).toBe(429);
});

test('a limit of an operation counts its methods and its path with everything below', () => {
  const limiter = createLimiter([{ calls: 1, per: '1h', match: { methods: ['POST'], path: '/policies' } }]);
  const statusOf = (method: string, path: string) => limiter(EPOCH_MS, method, path).refusal;
  for (const other of ['/policies-2', '/policie', '/', '/quotes-requests'])
    expect(statusOf('POST', other)).toBeUndefined();
  expect(statusOf('GET', '/policies')).toBeUndefined();
  expect([statusOf('POST', '/policies/x'), statusOf('POST', '/policies')]).toEqual([undefined, 429]);
});

test('fields state what is left on every response, and a refusal states its wait as a date', () => {
  const limiter = createLimiter([
    { calls: 2, per: '1h', window: 'fixed', retryAfter: 'date', status: 403, fields: true },
    { calls: 100, per: '1m', fields: true },
  ]);
  const call = () => limiter(EPOCH_MS, 'GET', '/');
  const minute = { 'ratelimit-policy': '"calls";q=100;w=60', ratelimit: '"calls";r=99;t=60' };
  expect(call()).toMatchObject({ refusal: undefined, headers: minute });
  call();
  const hour = { 'ratelimit-policy': '"calls";q=2;w=3600', ratelimit: '"calls";r=0;t=3600' };
  expect(call()).toMatchObject({ refusal: 403, headers: { ...hour, 'retry-after': 'Tue, 01 Dec 2026 00:59:50 GMT' } });
});

test('also counts calls without a valid token, and refuses with a problem body', async () => {
  const partner = await Partner.start({ limits: [{ calls: 1, per: '1s', window: 'bucket' }] });
  expect((await partner.get('/events', '')).status).toBe(401);
  const refused = await partner.get('/events');
  expect(refused.headers.get('retry-after')).toBe('1');
  expect(await refused.json()).toMatchObject({ title: 'Too Many Requests', status: 429, simulated: true });
});
