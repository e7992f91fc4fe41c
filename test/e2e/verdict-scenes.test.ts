/** What the sidecar says in an incident, after seconds: whose fault it is, in its first words. All scenes are played at the same time. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { makeCertificates } from '../support/certificates.ts';
import { playVerdictScene, VERDICT_SCENES } from './verdict-scenes.ts';

const certificates = makeCertificates({ days: -1 });
let verdicts: ReadonlyMap<string, readonly Status['verdict'][]>;
beforeAll(async () => {
  const played = VERDICT_SCENES.map(
    async (scene) => [scene.name, await playVerdictScene(scene, certificates)] as const,
  );
  verdicts = new Map(await Promise.all(played));
}, 60_000);
afterAll(() => certificates[Symbol.dispose]());

it.each(VERDICT_SCENES)('$name: $where', ({ name, where, words }) => {
  const looks = verdicts.get(name) ?? [];
  expect(looks.length).toBeGreaterThan(0);
  for (const verdict of looks)
    expect([verdict.where, verdict.headline.slice(0, words.length)], JSON.stringify(verdict)).toEqual([where, words]);
});

it('two causes at once: the other is named', () => {
  expect(verdicts.get('two causes')?.[0]?.other).toMatch(/^Partner or network: /);
});

it('the last fault speaks for itself', () => {
  expect(verdicts.get('certificate expired')?.[0]?.detail).toContain('CERT_HAS_EXPIRED');
  expect(verdicts.get('HTML 403')?.[0]?.detail).toContain('web page came instead of a response from the API (403');
});
