/** What the sidecar says in an incident, after seconds: whose fault it is, in its first words. All scenes are played at the same time. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Status } from '../../src/admin/status/status.ts';
import { makeCertificates } from '../support/certificates.ts';
import { playVerdictScene, VERDICT_SCENES } from './verdict-scenes.ts';

const certificates = makeCertificates({ days: -1 });
let verdicts: ReadonlyMap<string, Status['verdict']>;
beforeAll(async () => {
  const played = VERDICT_SCENES.map(
    async (scene) => [scene.name, await playVerdictScene(scene, certificates)] as const,
  );
  verdicts = new Map(await Promise.all(played));
}, 60_000);
afterAll(() => certificates[Symbol.dispose]());

it.each(VERDICT_SCENES)('$name: $where', ({ name, where, words }) => {
  const verdict = verdicts.get(name);
  expect(verdict).toMatchObject({ where, headline: expect.stringContaining(words) as string });
  expect(verdict?.headline.startsWith(words)).toBe(true);
});

it('two causes at once: the other is named', () => {
  expect(verdicts.get('two causes')?.other).toMatch(/^Partner or network: /);
});

it('the last fault speaks for itself', () => {
  expect(verdicts.get('certificate expired')?.detail).toContain('CERT_HAS_EXPIRED');
  expect(verdicts.get('HTML 403')?.detail).toContain('web page came instead of a response from the API (403');
});
