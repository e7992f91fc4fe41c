/**
 * The same traffic straight to an origin server and through the sidecar: what the origin receives and what the client gets must be the
 * same, byte for byte, after the list of intended differences.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { startInProcess } from '../composition/in-process.ts';
import { FAILS_WHEN_HANGING } from '../support/rounds.ts';
import { DIFFERENCES, OWN_DATE } from './differences.ts';
import type { Circumstances, Expected } from './differences.ts';
import { exchange, startRawOrigin } from './raw-exchange.ts';
import type { Exchange, Traffic } from './raw-exchange.ts';
import { HERE, ORIGIN, traffic } from './traffic.ts';

const RUNS = 1500;
const BEARER = 'token-1-of-the-tests';
const NOW = /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

it('traffic through the sidecar differs in the listed ways only, and in each of them', async () => {
  await using origin = await startRawOrigin();
  const sidecar = await startInProcess({ apiUrl: origin.url, keepsEvents: false });
  const authority = new URL(origin.url).host;
  const exercised = new Set<string>();
  await fc.assert(
    fc.asyncProperty(traffic, async (plan) => {
      const direct = await exchange(origin.url, origin, addressed(plan, authority, authority));
      const proxied = await exchange(sidecar.url, origin, addressed(plan, new URL(sidecar.url).host, authority));
      if (direct.request === undefined || direct.response === undefined)
        throw new Error('the exchange itself is at fault');
      const circumstances = { sent: direct.request, received: direct.response, authority, bearer: BEARER };
      expect(withoutOwnDate(proxied)).toEqual(predict(circumstances, exercised));
    }),
    { numRuns: RUNS, ...FAILS_WHEN_HANGING },
  );
  expect(origin.malformed).toEqual([]);
  expect(DIFFERENCES.map(({ id }) => id).filter((id) => !exercised.has(id))).toEqual([]);
});

it('docs/differences.md lists the same differences', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'differences.md'), 'utf8');
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('| `re'))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    );
  expect(rows).toEqual(DIFFERENCES.map(({ id, what, reference }) => [`\`${id}\``, what, reference]));
});

function addressed(plan: Traffic, here: string, origin: string): Traffic {
  return { ...plan, head: plan.head.replaceAll(HERE, here), response: plan.response.replaceAll(ORIGIN, origin) };
}

/** What must be seen through the sidecar, given what was seen without it. @param exercised gets the ids of what made a difference */
function predict(circumstances: Circumstances, exercised: Set<string>): Expected {
  const expected: Expected = { request: { ...circumstances.sent }, response: { ...circumstances.received } };
  for (const { id, apply } of DIFFERENCES) {
    const before = JSON.stringify(expected);
    apply(expected, circumstances);
    if (JSON.stringify(expected) !== before) exercised.add(id);
  }
  return expected;
}

/** A `Date` of now is the sidecar's own; that of the origin server is years old. */
function withoutOwnDate({ request, response }: Exchange): unknown {
  if (response === undefined) return { request, response };
  const headers = response.headers.map(([name, value]) =>
    name === 'Date' && NOW.test(value) && Date.parse(value) > Date.now() - 60_000 ? [name, OWN_DATE] : [name, value],
  );
  return { request, response: { ...response, headers } };
}
