/** What the sidecar says in an incident, after seconds: whose fault it is, in its first words. All scenes are played at the same time. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { makeCertificates } from '../support/certificates.ts';
import { playVerdictScene, VERDICT_SCENES } from './verdict-scenes.ts';

/** So that the scenes do not start all at once. */
const BETWEEN_STARTS_MS = 60;
/** On a machine with other work, a verdict may rightly blame this process, and says nothing of the scene: it is played again, beside fewer others. */
const MAX_ROUNDS = 4;
const STOOD_STILL = 'The sidecar gets too little CPU or memory';

const certificates = makeCertificates({ days: -1 });
const delays = monitorEventLoopDelay();
const verdicts = new Map<string, readonly Status['verdict'][]>();
beforeAll(async () => {
  delays.enable();
  let scenes = VERDICT_SCENES;
  for (let round = 0; round < MAX_ROUNDS && scenes.length > 0; round++) {
    await Promise.all(
      scenes.map(async (scene, index) => {
        await sleep(index * BETWEEN_STARTS_MS);
        verdicts.set(scene.name, await playVerdictScene(scene, certificates));
      }),
    );
    scenes = scenes.filter(({ name }) => verdicts.get(name)?.some(({ headline }) => headline.startsWith(STOOD_STILL)));
  }
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
