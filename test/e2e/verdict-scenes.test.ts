/** What the sidecar says in an incident, after seconds: whose fault it is, in its first words. All scenes are played at the same time. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { makeCertificates } from '../support/certificates.ts';
import { playVerdictScene, VERDICT_SCENES } from './verdict-scenes.ts';

/** So that the scenes do not start all at once. */
const BETWEEN_STARTS_MS = 60;

const certificates = makeCertificates({ days: -1 });
const delays = monitorEventLoopDelay();
let verdicts: ReadonlyMap<string, readonly Status['verdict'][]>;
beforeAll(async () => {
  delays.enable();
  const played = VERDICT_SCENES.map(async (scene, index) => {
    await sleep(index * BETWEEN_STARTS_MS);
    return [scene.name, await playVerdictScene(scene, certificates)] as const;
  });
  verdicts = new Map(await Promise.all(played));
  delays.disable();
});
afterAll(() => certificates[Symbol.dispose]());

it.each(VERDICT_SCENES)('$name: $where', ({ name, where, words }) => {
  const looks = verdicts.get(name) ?? [];
  expect(looks.length).toBeGreaterThan(0);
  for (const verdict of looks)
    expect([verdict.where, verdict.headline.slice(0, words.length)], explain(verdict)).toEqual([where, words]);
});

it('two causes at once: the other is named', () => {
  expect(verdicts.get('two causes')?.[0]?.other).toMatch(/^Partner or network: /);
});

it.each(VERDICT_SCENES.filter(({ name }) => name.startsWith('one of two routes')))('$name: stock', ({ name }) => {
  expect(new Set(verdicts.get(name)?.map(({ route }) => route))).toEqual(new Set(['stock']));
});

it('the last fault speaks for itself', () => {
  expect(verdicts.get('certificate expired')?.[0]?.detail).toContain('CERT_HAS_EXPIRED');
  expect(verdicts.get('HTML 403')?.[0]?.detail).toContain('web page came instead of a response from the API (403');
});

/** Partner, sidecar and clients share this process: where it stood still, all of them were slow. */
function explain(verdict: Status['verdict']): string {
  return `${JSON.stringify(verdict)}, the process stood still for up to ${String(Math.round(delays.max / 1e6))} ms`;
}
