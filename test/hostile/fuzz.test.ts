/** The short form of the fuzzer; `npm run soak:fuzz` is the long one. */
import { expect, it } from 'vitest';
import { fuzz } from './fuzz.ts';
import { startBeforeWitness } from './sidecar-before-witness.ts';

const COUNT = 2000;
const STREAMED = { SIDECAR_REPLAY_BUFFER_BYTES: '8' };

it('2000 mutated requests: each connection gets a response or is closed, and the witness saw what the sidecar reports', async () => {
  await using running = await startBeforeWitness('hostile-fuzz');
  const report = await fuzz(running, { count: COUNT, seed: 20_261_121 });
  expect(report.attempts).toBe(report.seen);
  expect(report.compared).toBe(COUNT / 20);
  // A fuzzer whose requests are all refused, or all served, would find nothing.
  expect(report.responses['200']).toBeGreaterThan(COUNT / 10);
  expect(report.responses['400']).toBeGreaterThan(COUNT / 10);
  expect(report.responses['403']).toBeGreaterThan(COUNT / 100);
  expect(running.sidecar.stderr()).toBe('');
  expect(await running.sidecar.stop()).toEqual({ code: 0, signal: null });
});

it('500 with their bodies streamed: what breaks is cut off upstream, never made whole', async () => {
  await using running = await startBeforeWitness('hostile-fuzz-streamed', STREAMED);
  const report = await fuzz(running, { count: 500, seed: 20_261_122, streams: true });
  expect(report.attempts).toBeGreaterThan(report.seen);
  expect(report.seen).toBeGreaterThan(50);
  expect(report.compared).toBe(25);
});
