/** A client without a stored secret: the component and the chart's values, rendered, checked, and started with a projected token. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { createAssertionIssuer } from '../support/assertion-issuer.ts';
import { call } from '../support/calls.ts';
import { startContainer } from '../support/container-process.ts';
import { CHART, helm } from '../support/helm.ts';
import { findSchemaFaults, findUnknownFields } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { environmentOf, findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import type { Pod } from '../support/pods.ts';
import { CONFIG, render, renderInAppChart, writeValues } from './chart.ts';
import type { Values } from './chart.ts';
import { kustomizeOwn } from './own-kustomization.ts';

const ENTRA_AUDIENCE = 'api://AzureADTokenExchange';
const KEYCLOAK_AUDIENCE = 'https://sso.partner.example/realms/partners';
const PAGE = readFileSync(join(import.meta.dirname, '../../docs/without-a-stored-secret.md'), 'utf8');
const blocksOf = (page: string): string[] =>
  [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block);

/** The kustomization that the page shows, with every kind of workload. */
function fromPage(audience: string, more = ''): KubernetesObject[] {
  const blocks = blocksOf(PAGE).filter((block) => block.includes('bearer-sidecar/client-assertion'));
  const block = blocks.find((candidate) => candidate.includes(audience)) ?? 'the page has no such kustomization';
  const resources = '[deploy/kubernetes/examples/app, deploy/kubernetes/examples/job, cron-job.yaml]';
  const shared = 'apiVersion: batch/v1\nkind: CronJob\nmetadata: { name: legacy-cleanup }\n';
  const pod = '{ restartPolicy: Never, containers: [{ name: app, image: app }] }';
  const job = `spec: { schedule: '0 3 * * *', jobTemplate: { spec: { template: { spec: ${pod} } } } }\n`;
  const text = block
    .replace(/^resources: .*$/m, `resources: ${resources}`)
    .replace(/^.*bearer-sidecar\/client-assertion.*$/m, `$&${more}`);
  return kustomizeOwn(text, { 'cron-job.yaml': shared + job });
}

function fromChart(audience: string, values: Values = {}): KubernetesObject[] {
  const client = { assertion: { audience, clientId: 'legacy-app' } };
  return values.mode === 'standalone'
    ? render({ client, ...values })
    : renderInAppChart({ client, config: CONFIG, ...values });
}

function tokenSourceOf({ volumes }: Pod) {
  const volume = volumes.find(({ name }) => name === 'bearer-sidecar-assertion');
  return volume?.projected?.sources[0]?.serviceAccountToken;
}

const RENDERED: readonly (readonly [string, string, () => KubernetesObject[]])[] = [
  ['kustomize, for Entra ID', ENTRA_AUDIENCE, () => fromPage(ENTRA_AUDIENCE)],
  ['kustomize, for Keycloak', KEYCLOAK_AUDIENCE, () => fromPage(KEYCLOAK_AUDIENCE)],
  ['the chart', ENTRA_AUDIENCE, () => fromChart(ENTRA_AUDIENCE)],
  ['the chart, classic', KEYCLOAK_AUDIENCE, () => fromChart(KEYCLOAK_AUDIENCE, { mode: 'classic' })],
  [
    'the chart, standalone',
    ENTRA_AUDIENCE,
    () => fromChart(ENTRA_AUDIENCE, { mode: 'standalone', standalone: { serviceAccountName: 'partner-api' } }),
  ],
];

describe.each(RENDERED)('%s', (name, audience, make) => {
  it('mounts a token for that audience alone, and no Secret of the client', () => {
    const objects = make();
    expect(findSchemaFaults(objects)).toEqual([]);
    expect(findBrokenReferences(objects)).toEqual([]);
    const pods = podsOf(objects).filter((pod) => sidecarOf(pod) !== undefined);
    expect(pods.length).toBe(name.startsWith('kustomize') ? 3 : 1);
    for (const pod of pods) {
      expect(tokenSourceOf(pod)).toEqual({ path: 'token', audience, expirationSeconds: 3600 });
      const container = sidecarOf(pod)!;
      expect(container.volumeMounts).toContainEqual({
        name: 'bearer-sidecar-assertion',
        mountPath: '/var/run/secrets/bearer-sidecar',
        readOnly: true,
      });
      const secrets = pod.volumes.flatMap(({ secret }) => secret?.secretName ?? []);
      expect(secrets).toEqual(name.endsWith('standalone') ? ['bearer-sidecar-callers'] : []);
      const env = environmentOf(container, objects);
      expect(env).toMatchObject({
        SIDECAR_AUTH_METHOD: 'client_assertion',
        SIDECAR_AUTH_ASSERTION_FILE: '/var/run/secrets/bearer-sidecar/token',
        SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE: audience,
      });
      for (const unused of ['CLIENT_ID_FILE', 'CLIENT_SECRET_FILE', 'AUTH_CACHE_FILE'])
        expect(env[`SIDECAR_${unused}`] ?? '').toBe('');
      expect(env.SIDECAR_CLIENT_ID).not.toBe('');
    }
  });

  it('starts, and gets its token with it', async () => {
    const objects = make();
    const pod = podsOf(objects).find((candidate) => sidecarOf(candidate) !== undefined)!;
    const container = sidecarOf(pod)!;
    const issuer = createAssertionIssuer();
    const issued: string[] = [];
    const issueToken = (source: { readonly audience?: string }): string => {
      const token = issuer.issue({ aud: [source.audience] });
      issued.push(token);
      return token;
    };
    const secrets = { 'bearer-sidecar-callers': { 'header-value': 'a-value-of-callers' } };
    const label = `assertion-${name.replaceAll(/\W+/g, '-')}`;
    await using running = await startContainer({ name: label, objects, pod, container, secrets, issueToken });
    const probe = `http://127.0.0.1:${String(running.adminPort)}/readyz`;
    await expect.poll(async () => (await call(probe)).status).toBe(200);
    const form = new URLSearchParams(running.tokens.requests[0]?.body.toString());
    expect(form.get('client_assertion')).toBe(issued[0]);
  });
});

it('the component works before fleet and classic', () => {
  const objects = fromPage(ENTRA_AUDIENCE, '\n  - bearer-sidecar/fleet\n  - bearer-sidecar/classic');
  expect(findBrokenReferences(objects)).toEqual([]);
  expect(podsOf(objects).map(({ initContainers }) => initContainers.length)).toEqual([0, 0, 0]);
  expect(podsOf(objects).map((pod) => tokenSourceOf(pod)?.audience)).toEqual(Array(3).fill(ENTRA_AUDIENCE));
});

it('no object has a field that Kubernetes does not know', () => {
  expect(
    findUnknownFields(RENDERED.filter(([name]) => name !== 'the chart, classic').flatMap(([, , make]) => make())),
  ).toEqual([]);
});

it('the chart refuses an audience without a client id, and times that the cluster would refuse', () => {
  for (const assertion of [
    { audience: ENTRA_AUDIENCE },
    { audience: ENTRA_AUDIENCE, clientId: '' },
    { audience: ENTRA_AUDIENCE, clientId: 'a', expirationSeconds: 60 },
    { audience: ENTRA_AUDIENCE, clientId: 'a', secretName: 'b' },
  ]) {
    const values = writeValues({ config: CONFIG, client: { assertion } });
    const { status, stderr } = helm('template', 'partner', CHART, '--values', values);
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining("values don't meet the specifications of the schema"),
    ]);
  }
});

it("the chart's README shows values that give it", () => {
  const block = blocksOf(readFileSync(join(CHART, 'README.md'), 'utf8')).find((text) => text.includes('assertion:'));
  const { client, config } = parse(block ?? '') as Record<string, Values>;
  const objects = renderInAppChart({ client, config: { SIDECAR_BASE_URL: CONFIG.SIDECAR_BASE_URL, ...config } });
  expect(tokenSourceOf(podsOf(objects)[0]!)?.audience).toBe(ENTRA_AUDIENCE);
});
