/** The Helm chart as a real helm renders it: valid for the API, the same container as deploy/kubernetes, strict in its values. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CONFIG_VARIABLE, SETTINGS } from '../../src/config/schema/schema.ts';
import { call } from '../support/calls.ts';
import { nonLoopbackAddress, startContainer } from '../support/container-process.ts';
import { CHART, helm } from '../support/helm.ts';
import { kustomizeExample } from '../support/kustomize.ts';
import { findSchemaFaults, findUnknownFields } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { environmentOf, findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import { CONFIG, VALUES_FILES, render, renderInAppChart, renderValuesFile } from './chart.ts';

const EVERYTHING = {
  fleet: { secretName: 'redis' },
  podMonitor: { enabled: true, labels: { release: 'prometheus' } },
  networkPolicy: { enabled: true },
};

const RENDERED: readonly (readonly [string, () => KubernetesObject[]])[] = [
  ['standalone', () => render({ mode: 'standalone' })],
  ['standalone with everything', () => render({ mode: 'standalone', ...EVERYTHING })],
  ['native in the chart of an app', () => renderInAppChart({})],
  ['native in the chart of an app, with everything', () => renderInAppChart(EVERYTHING)],
  ['classic in the chart of an app', () => renderInAppChart({ mode: 'classic', ...EVERYTHING })],
  ...VALUES_FILES.map((name): readonly [string, () => KubernetesObject[]] => [name, () => renderValuesFile(name)]),
];

it('says which version renders, and that lint finds nothing, without values and with each file of them', () => {
  console.info(`helm: ${helm('version', '--short').stdout.trim()}`);
  expect(VALUES_FILES.length).toBeGreaterThan(7);
  for (const args of [[], ...VALUES_FILES.map((name) => ['--values', join(CHART, 'ci', name)])]) {
    const { status, stdout } = helm('lint', '--strict', CHART, ...args);
    expect([args, status, stdout]).toEqual([args, 0, expect.stringContaining('0 chart(s) failed')]);
  }
});

/** A list of which nothing is left is the same to Kubernetes as one that is not there. */
function withoutNulls(objects: readonly KubernetesObject[]): KubernetesObject[] {
  return JSON.parse(JSON.stringify(objects, (_, value: unknown) => value ?? undefined)) as KubernetesObject[];
}

describe.each(RENDERED)('%s', (_, make) => {
  it('is valid by the schemas of Kubernetes and refers only to existing objects', () => {
    const objects = withoutNulls(make());
    expect(objects.length).toBeGreaterThan(1);
    expect(findSchemaFaults(objects)).toEqual([]);
    expect(findBrokenReferences(objects)).toEqual([]);
    const [pod] = podsOf(objects);
    const env = environmentOf(sidecarOf(pod!)!, objects);
    expect(Number(env.SIDECAR_DRAIN_MS)).toBeLessThan(pod!.terminationGracePeriodSeconds * 1000);
    expect([CONFIG_VARIABLE, ...[...SETTINGS.values()].map(({ env: name }) => name)]).toEqual(
      expect.arrayContaining(Object.keys(env)),
    );
  });
});

it('the rules are those of deploy/prometheus, braces included, when they are enabled', () => {
  const rulesIn = (objects: readonly KubernetesObject[]) => objects.find(({ kind }) => kind === 'PrometheusRule')?.spec;
  const written = ['recording', 'alerts'].flatMap((name) => {
    const file = readFileSync(join(CHART, '..', '..', 'prometheus', `${name}.yaml`), 'utf8');
    return (parse(file) as { groups: readonly unknown[] }).groups;
  });
  expect(rulesIn(render(EVERYTHING))).toEqual({ groups: written });
  expect(rulesIn(kustomizeExample('native'))).toEqual({ groups: written });
  expect(rulesIn(render({ podMonitor: { enabled: true, rules: false } }))).toBeUndefined();
  expect(rulesIn(render({}))).toBeUndefined();
});

it('no object has a field that Kubernetes does not know', () => {
  expect(findUnknownFields(withoutNulls(RENDERED.flatMap(([, make]) => make())))).toEqual([]);
});

it('native: the same container as in deploy/kubernetes', () => {
  const containerOf = (objects: readonly KubernetesObject[]) => {
    const { envFrom, ...container } = sidecarOf(podsOf(objects)[0]!)!;
    expect(envFrom).toBeDefined();
    return container;
  };
  const chart = renderInAppChart({});
  expect(podsOf(chart)[0]?.initContainers[0]?.restartPolicy).toBe('Always');
  // The README's values name a registry.
  const image = 'registry.example/bearer-sidecar:0.1.0';
  const expected = { ...containerOf(kustomizeExample('native')), image, imagePullPolicy: 'IfNotPresent' };
  expect(containerOf(chart)).toEqual(expected);
});

it('the same settings as deploy/kubernetes, by mode', () => {
  const settingsOf = (objects: readonly KubernetesObject[]) =>
    environmentOf(sidecarOf(podsOf(objects).find((pod) => sidecarOf(pod) !== undefined)!)!, objects);
  expect(settingsOf(renderInAppChart({}))).toEqual(settingsOf(kustomizeExample('native')));
  expect(settingsOf(renderInAppChart({ mode: 'classic' }))).toEqual(settingsOf(kustomizeExample('classic')));
  expect(settingsOf(render({ mode: 'standalone' }))).toEqual({
    ...settingsOf(kustomizeExample('standalone')),
    SIDECAR_ALLOWED_HOSTS: ['', '.default', '.default.svc', '.default.svc.cluster.local']
      .map((domain) => `partner-bearer-sidecar${domain}`)
      .join(),
  });
});

it('numbers stay as written, and a release may be named `on`', () => {
  const config = { ...CONFIG, SIDECAR_REPLAY_TOTAL_BYTES: 33_554_432, SIDECAR_RATE: 2.5, SIDECAR_WEBSOCKET: true };
  const objects = render({ mode: 'standalone', config, ...EVERYTHING }, 'on');
  expect(findSchemaFaults(objects)).toEqual([]);
  expect(objects.find(({ kind }) => kind === 'ConfigMap')?.data).toMatchObject({
    SIDECAR_REPLAY_TOTAL_BYTES: '33554432',
    SIDECAR_RATE: '2.5',
    SIDECAR_WEBSOCKET: 'true',
  });
});

it('the sidecar starts with the settings of the chart, and its probe succeeds', async () => {
  const objects = render({ mode: 'standalone' });
  const pod = podsOf(objects)[0]!;
  const container = sidecarOf(pod)!;
  const secrets = { 'bearer-sidecar-callers': { 'header-value': 'value-of-the-required-field' } };
  await using running = await startContainer({ name: 'helm', objects, pod, container, secrets });
  const probe = `http://${nonLoopbackAddress()}:${String(running.adminPort)}${container.readinessProbe!.httpGet!.path}`;
  await expect.poll(async () => (await call(probe)).status).toBe(200);
});
