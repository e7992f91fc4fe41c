/**
 * The corpus against the sidecar as a child process, before a witness of every byte: of what must be refused nothing
 * reaches the upstream, what must be forwarded arrives once and exactly, and a good request is served after each.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CORPUS } from './corpus/corpus.ts';
import type { HostileCase } from './corpus/case.ts';
import { faultsOf, send } from './case-run.ts';
import { startBeforeWitness } from './sidecar-before-witness.ts';
import type { WitnessedSidecar } from './sidecar-before-witness.ts';

const KINDS = [
  ['refused, and never seen upstream', (each: HostileCase) => each.expected.kind === 'refuse'],
  ['forwarded once and exactly', (each: HostileCase) => each.expected.kind === 'forward'],
  ['left open: at most one well-formed request', (each: HostileCase) => each.expected.kind === 'either'],
] as const;

let running: WitnessedSidecar;
beforeAll(async () => {
  running = await startBeforeWitness('hostile-corpus');
});
afterAll(() => running[Symbol.asyncDispose]());

describe.each(KINDS)('%s', (_, isOfThem) => {
  it.each(CORPUS.filter(isOfThem))('$id ($clause)', async (hostile) => {
    expect(faultsOf(await send(running.sidecar.proxyUrl, running.witness, hostile))).toEqual([]);
  });
});

/** Where the first head ends, if something follows it. */
function endOfHead({ bytes }: HostileCase): number | undefined {
  const end = bytes.indexOf('\r\n\r\n') + 4;
  return end > 3 && end < bytes.length ? end : undefined;
}

describe('the same when the head has been checked before the rest arrives', () => {
  it.each(CORPUS.filter((each) => endOfHead(each) !== undefined))('$id ($clause)', async (hostile) => {
    const outcome = await send(running.sidecar.proxyUrl, running.witness, hostile, endOfHead(hostile));
    expect(faultsOf(outcome)).toEqual([]);
  });
});

it('the corpus has enough of each kind, and no case twice', () => {
  expect(CORPUS.filter((each) => each.expected.kind === 'refuse').length).toBeGreaterThanOrEqual(200);
  expect(CORPUS.filter((each) => each.expected.kind === 'forward').length).toBeGreaterThanOrEqual(100);
  expect(new Set(CORPUS.map(({ id }) => id)).size).toBe(CORPUS.length);
});

it('it is one process from the first case to the last, which had nothing to complain of', () => {
  expect(() => process.kill(running.sidecar.pid, 0)).not.toThrow();
  expect(running.sidecar.stderr()).toBe('');
  expect(running.sidecar.stdout()).not.toMatch(/"level":(?:"(?:warn|error|fatal)"|[456]0)/);
});
