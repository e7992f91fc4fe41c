/**
 * Another writer in Redis: it puts back what a replica once stored, and changes all unsealed parts. No replica goes back to a token that
 * was refused or has expired, and the token endpoint gets no more requests than without a fleet.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HostileFleet, openHostileRedis } from './hostile-fleet.ts';
import type { Fields, HostileRedis, Sending } from './hostile-fleet.ts';

const HOUR_MS = 3_600_000;
const FAR_MS = 30 * 24 * HOUR_MS;

/** The same with instants that are far ahead, and a mark that no token has. */
function renewed(hashes: ReadonlyMap<string, Fields>, now: number): Map<string, Fields> {
  const unsealed = { mark: 'of-no-token', expiresAt: String(now + FAR_MS), lifetime: String(FAR_MS) };
  return new Map([...hashes].map(([key, fields]) => [key, new Map([...fields, ...Object.entries(unsealed)])]));
}

test('a refused token that is put back again and again is sent once at most', async () => {
  const hostile = await HostileFleet.open();
  await hostile.start(2);
  const old = await hostile.read();
  hostile.isAccepted = (value) => value !== 'token-1';
  for (let call = 0; call < 60; call++) {
    await hostile.write(renewed(old, hostile.redisNow));
    await hostile.call();
    await hostile.advance(6000);
  }
  const sendings = [...hostile.sent.values()].flat().filter(({ value }) => value === 'token-1').length;
  expect({ refused: hostile.refused, sendings }).toEqual({ refused: 0, sendings: 2 });
  expect(hostile.fleet.requests).toBeLessThanOrEqual(3);
});

test('an expired token that is put back is not sent', async () => {
  const hostile = await HostileFleet.open();
  await hostile.start(1);
  const old = await hostile.read();
  hostile.fleet.replicas[0]?.source.stop();
  await hostile.advance(HOUR_MS);
  await hostile.write(renewed(old, hostile.redisNow));
  await hostile.replace(0);
  await hostile.call();
  expect([...hostile.sent.values()].flat()).toMatchObject([{ value: 'token-2' }]);
});

test('a failure that is put back after the endpoint has recovered holds back no replica', async () => {
  const hostile = await HostileFleet.open();
  const { respond } = hostile.fleet;
  hostile.fleet.respond = () => ({ kind: 'rejected', detail: 'auth.test answered 401' });
  await hostile.start(1);
  const old = await hostile.read();
  const far = String(hostile.redisNow + FAR_MS);
  const edited = [...old].map(([key, fields]): [string, Fields] => {
    return [key, new Map([...fields, ['failedBy', 'x'], ['failedUntil', far], ['yieldUntil', far]])];
  });
  hostile.fleet.respond = respond;
  await hostile.advance(120_000);
  await hostile.write(new Map(edited));
  await hostile.replace(0);
  expect(hostile.fleet.values()).toEqual([`token-${hostile.fleet.requests}`]);
});

test.each([-2 * HOUR_MS, 2 * HOUR_MS])(
  'when the clock of Redis steps by %d ms, replicas keep sharing and send no refused token twice',
  async (stepMs) => {
    const hostile = await HostileFleet.open();
    await hostile.start(4);
    hostile.redisSkewMs += stepMs;
    for (let call = 0; call < 48; call++) {
      await hostile.advance(HOUR_MS / 12);
      await hostile.call();
    }
    expect(hostile.refused).toBe(0);
    // Four lifetimes; in the first, each replica may find that it has to request a token itself.
    expect(hostile.fleet.requests).toBeLessThanOrEqual(4 * 1.4 + 4);
  },
);

type Step =
  | { readonly kind: 'call' | 'delete' | 'revoke' }
  | { readonly kind: 'advance'; readonly ms: number }
  | { readonly kind: 'replace'; readonly index: number }
  | { readonly kind: 'step-redis'; readonly ms: number }
  | { readonly kind: 'put-back'; readonly index: number; readonly edits: readonly (readonly [string, string])[] };

const FIELDS = [
  'value',
  'expiresAt',
  'owner',
  'leaseUntil',
  'failure',
  'failedBy',
  'failedUntil',
  'yieldUntil',
  'wanted',
];
const ANY_EDITS = fc.array(
  fc.tuple(
    fc.constantFrom(...FIELDS, 'mark', 'lifetime'),
    fc.constantFrom('far', 'now', '0', '-1', 'nan', '1e300', 'x', 'huge', ''),
  ),
  { maxLength: 4 },
);
const RENEWAL = fc.constant<[string, string][]>([
  ['expiresAt', 'far'],
  ['lifetime', 'far'],
  ['mark', 'x'],
]);
const EDITS = fc.oneof(ANY_EDITS, RENEWAL);

const STEPS: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    { weight: 5, arbitrary: fc.record({ kind: fc.constant('call' as const) }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('advance' as const), ms: fc.nat(300_000) }) },
    { weight: 6, arbitrary: fc.record({ kind: fc.constant('put-back' as const), index: fc.nat(), edits: EDITS }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('revoke' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('replace' as const), index: fc.nat() }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('step-redis' as const),
        ms: fc.integer({ min: -HOUR_MS, max: HOUR_MS }),
      }),
    },
  ),
  { minLength: 20, maxLength: 40 },
);

/** What one run of steps has shown. */
interface Observed {
  readonly hostile: HostileFleet;
  readonly durationMs: number;
  readonly revocations: number;
  readonly expiredSendings: number;
}

const LIFETIME_MS = 600_000;

async function run(redis: HostileRedis, steps: readonly Step[]): Promise<Observed> {
  const hostile = new HostileFleet(redis);
  await hostile.write(new Map());
  const { fleet } = hostile;
  fleet.lifetimeMs = LIFETIME_MS;
  let oldestAccepted = 1;
  let revocations = 0;
  let expiredSendings = 0;
  hostile.isAccepted = (value) => {
    const number = Number(value.slice('token-'.length));
    const isExpired = fleet.clock.now() >= fleet.requestedAt[number - 1]! + LIFETIME_MS;
    if (isExpired) expiredSendings++;
    return number >= oldestAccepted && !isExpired;
  };
  await hostile.start(3);
  const history = [await hostile.read()];
  const act: Record<Step['kind'], (step: Step) => Promise<void> | void> = {
    call: () => hostile.call(),
    advance: (step) => hostile.advance('ms' in step ? step.ms : 0),
    delete: () => hostile.write(new Map()),
    replace: (step) => hostile.replace('index' in step ? step.index : 0),
    'step-redis': (step) => void (hostile.redisSkewMs += 'ms' in step ? step.ms : 0),
    revoke() {
      revocations++;
      oldestAccepted = fleet.requests + 1;
    },
    'put-back'(step) {
      if (step.kind !== 'put-back') return;
      return hostile.write(edit(history[step.index % history.length]!, step.edits, hostile.redisNow));
    },
  };
  for (const step of steps) {
    await act[step.kind](step);
    history.push(await hostile.read());
  }
  return { hostile, durationMs: fleet.clock.now(), revocations, expiredSendings };
}

/** Tokens that the replica took although it had had them. */
function takenTwice(sendings: readonly Sending[]): string[] {
  const pairs = new Set(sendings.map(({ value, serial }) => `${value} as number ${serial}`));
  const values = [...pairs].map((pair) => pair.slice(0, pair.indexOf(' ')));
  return values.filter((value, index) => values.indexOf(value) < index);
}

/** Refused tokens that were sent after another one had been accepted. */
function sentAgain(sendings: readonly Sending[]): string[] {
  return sendings.flatMap(({ value, isAccepted }, index) => {
    const later = sendings.slice(index + 1);
    const replacedAt = later.findIndex((sending) => sending.value !== value && sending.isAccepted);
    const repeated = replacedAt < 0 ? [] : later.slice(replacedAt).filter((sending) => sending.value === value);
    return isAccepted || repeated.length === 0 ? [] : [value];
  });
}

function edit(hashes: ReadonlyMap<string, Fields>, edits: readonly (readonly [string, string])[], now: number) {
  const words: Readonly<Record<string, string>> = {
    far: String(now + FAR_MS),
    now: String(now + 1),
    huge: 'x'.repeat(100_000),
  };
  const changed = edits.map(([field, word]): [string, string] => [field, words[word] ?? word]);
  return new Map([...hashes].map(([key, fields]) => [key, new Map([...fields, ...changed])]));
}

test('no order of writes, revocations and restarts makes a replica go back to a dead token', async () => {
  const redis = await openHostileRedis();
  await fc.assert(
    fc.asyncProperty(STEPS, async (steps) => {
      const { hostile, durationMs, revocations, expiredSendings } = await run(redis, steps);
      for (const [replica, sendings] of hostile.sent) {
        expect(takenTwice(sendings)).toEqual([]);
        expect(sentAgain(sendings)).toEqual([]);
        const invalidations = replica.events.filter(({ kind }) => kind === 'token-invalidated').length;
        expect(replica.requests).toBeLessThanOrEqual(1 + durationMs / (0.6 * LIFETIME_MS) + invalidations);
        // A replica that starts may find one dead token, and replaces it.
        expect(invalidations).toBeLessThanOrEqual(2 * revocations + 1);
      }
      if (!steps.some(({ kind }) => kind === 'step-redis')) expect(expiredSendings).toBe(0);
    }),
    { numRuns: Number(process.env.HOSTILE_RUNS ?? 25) },
  );
});
