/** The warning of limits that add up over replicas. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load/load.ts';
import { BASE_ENV, scratchFile } from '../base-env.ts';

const CLUSTER = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };

function warningsOf(env: Readonly<Record<string, string>>, yaml = '{}'): readonly string[] {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, file: scratchFile(yaml) });
  expect(loaded.ok).toBe(true);
  return loaded.warnings;
}

test('a configured limit is named in a cluster, where neither share nor fleet is set, and nowhere else', () => {
  const settings = fc.record({
    isInCluster: fc.boolean(),
    rate: fc.constantFrom('auto', '5', '0.5'),
    maxRate: fc.constantFrom('', '10'),
    limits: fc.constantFrom('', '[]', '[{ calls: 350, per: 10s }]'),
    share: fc.constantFrom('', '1', '2'),
    redisUrl: fc.constantFrom('', 'redis://127.0.0.1'),
    isOfRoute: fc.boolean(),
  });
  fc.assert(
    fc.property(settings, ({ isInCluster, rate, maxRate, limits, share, redisUrl, isOfRoute }) => {
      fc.pre(redisUrl === '' || share !== '2');
      const own = `throttle: { rate: ${rate}${maxRate && `, maxRate: ${maxRate}`}${limits && `, limits: ${limits}`} }`;
      const yaml = isOfRoute ? `routes: [{ name: a, pathPrefix: /a, ${own} }]` : own;
      const env = { ...(isInCluster ? CLUSTER : {}), SIDECAR_THROTTLE_SHARE: share, SIDECAR_REDIS_URL: redisUrl };
      const names = [
        ...(rate === 'auto' ? [] : ['throttle.rate']),
        ...(maxRate === '' ? [] : ['throttle.maxRate']),
        ...(limits.length > 2 ? ['throttle.limits'] : []),
      ];
      const isExpected = isInCluster && names.length > 0 && share !== '2' && redisUrl === '';
      const text = `${names.join(', ')}: for this replica alone; several together send a multiple of it, unless you set throttle.share (SIDECAR_THROTTLE_SHARE) to their number, or fleet.redisUrlFile (SIDECAR_REDIS_URL_FILE)`;
      expect(warningsOf(env, yaml)).toEqual(isExpected ? [text] : []);
    }),
  );
});

test('a route that shares its own limit is not meant', () => {
  const routes = (own: string) => `routes: [{ name: a, pathPrefix: /a, throttle: { rate: 5${own} } }]`;
  expect(warningsOf(CLUSTER, routes(''))).toHaveLength(1);
  expect(warningsOf(CLUSTER, routes(', share: 3'))).toEqual([]);
});
