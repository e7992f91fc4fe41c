/** A client that shows who it is by a key: what docs/kubernetes-kustomize.md and the chart's README say of it, rendered and started. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parse } from 'yaml';
import { call } from '../support/calls.ts';
import { startContainer } from '../support/container-process.ts';
import { CHART } from '../support/helm.ts';
import { findSchemaFaults } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { environmentOf, findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import { registerSecret } from '../support/secrets.ts';
import { CONFIG, renderInAppChart } from './chart.ts';
import type { Values } from './chart.ts';
import { DOCS, kustomizeOwn } from './own-kustomization.ts';

const FILE = '/etc/bearer-sidecar/client/private-key.pem';

/** Under the heading of that name, the first block of YAML that names the method. */
function blockOf(page: string): string {
  const section = page.split('## A client without a secret\n')[1]?.split(/^## /m)[0] ?? '';
  const blocks = [...section.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  return blocks.find((block) => block.includes('SIDECAR_AUTH_METHOD')) ?? '';
}

function fromKustomize(): KubernetesObject[] {
  return kustomizeOwn(`
resources: [deploy/kubernetes/examples/app]
components: [deploy/kubernetes/components/sidecar]
${blockOf(DOCS)}`);
}

function fromChart(): KubernetesObject[] {
  const { client, config } = parse(blockOf(readFileSync(join(CHART, 'README.md'), 'utf8'))) as Record<string, Values>;
  return renderInAppChart({ client, config: { ...CONFIG, ...config } });
}

it.each([
  ['kustomize', fromKustomize],
  ['the chart', fromChart],
])('%s: the sidecar starts with a private key, and gets its token', async (_, make) => {
  const objects = make();
  expect(findSchemaFaults(objects)).toEqual([]);
  expect(findBrokenReferences(objects)).toEqual([]);
  const pod = podsOf(objects)[0]!;
  const container = sidecarOf(pod)!;
  expect(environmentOf(container, objects)).toMatchObject({ SIDECAR_AUTH_PRIVATE_KEY_FILE: FILE });
  const { privateKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  registerSecret('a private key', privateKey.split('\n')[1] ?? '');
  const secrets = { 'bearer-sidecar-client': { 'client-id': 'client-with-a-key', 'private-key.pem': privateKey } };
  await using running = await startContainer({ name: 'client-with-a-key', objects, pod, container, secrets });
  const probe = `http://127.0.0.1:${String(running.adminPort)}/readyz`;
  await expect.poll(async () => (await call(probe)).status).toBe(200);
});
