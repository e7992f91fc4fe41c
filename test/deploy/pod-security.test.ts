/**
 * The pods by the written rules of the Pod Security Standard "restricted" and of OpenShift's restricted-v2, and one of them started as such a
 * cluster starts it: an arbitrary user, group 0.
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { call, post } from '../support/calls.ts';
import { startContainer } from '../support/container-process.ts';
import { KUBERNETES_FOLDER, kustomizeExample } from '../support/kustomize.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { findSecurityFaults } from '../support/pod-security.ts';
import { podsOf, sidecarOf } from '../support/pods.ts';
import type { Container, Pod } from '../support/pods.ts';
import { CONFIG, VALUES_FILES, render, renderValuesFile } from './chart.ts';
import type { Values } from './chart.ts';

const EXAMPLES = readdirSync(join(KUBERNETES_FOLDER, 'examples')).filter((name) => !['app', 'job'].includes(name));

const PODS: readonly (readonly [string, () => KubernetesObject[]])[] = [
  ...EXAMPLES.map((name): readonly [string, () => KubernetesObject[]] => [
    `the example ${name}`,
    () => kustomizeExample(name),
  ]),
  ...VALUES_FILES.map((name): readonly [string, () => KubernetesObject[]] => [
    `the chart with ${name}`,
    () => renderValuesFile(name),
  ]),
];

describe.each(PODS)('%s', (_, make) => {
  it('is accepted by "restricted" and by restricted-v2', () => {
    const pods = podsOf(make()).filter((pod) => sidecarOf(pod) !== undefined);
    expect(pods).not.toEqual([]);
    for (const pod of pods) expect(findSecurityFaults(pod, [sidecarOf(pod)!])).toEqual([]);
  });
});

it('the Valkey of the example: "restricted" accepts it, and restricted-v2 without its user', () => {
  const pod = podsOf(kustomizeExample('fleet')).find(({ owner }) => owner === 'Deployment valkey')!;
  expect(findSecurityFaults(pod, pod.containers)).toEqual(['restricted-v2: a user outside of the range']);
});

describe('each rule refuses a pod that breaks it', () => {
  const pod = podsOf(kustomizeExample('standalone'))[0]!;
  const container = sidecarOf(pod)!;
  const faultsOf = (own: object, spec: object = {}) => {
    const changed: Container = { ...container, securityContext: { ...container.securityContext, ...own } };
    const subject: Pod = { ...pod, spec: { ...pod.spec, ...spec } };
    return findSecurityFaults(subject, [changed]);
  };

  it.each<[string, object, object?]>([
    ['baseline: host namespaces', {}, { hostNetwork: true }],
    ['baseline: privileged containers', { privileged: true }],
    ['baseline: host processes', { windowsOptions: { hostProcess: true } }],
    ['baseline: AppArmor', { appArmorProfile: { type: 'Unconfined' } }],
    ['baseline: /proc mount type', { procMount: 'Unmasked' }],
    ['baseline: sysctls', {}, { securityContext: { sysctls: [{ name: 'a', value: 'b' }] } }],
    ['restricted: volume types', {}, { volumes: [{ name: 'a', hostPath: { path: '/' } }] }],
    ['restricted: privilege escalation', { allowPrivilegeEscalation: undefined }],
    ['restricted: running as non-root', { runAsNonRoot: undefined }],
    ['restricted: running as non-root user', { runAsUser: 0 }],
    ['restricted: seccomp', { seccompProfile: undefined }],
    ['restricted: capabilities', { capabilities: { drop: ['ALL'], add: ['NET_ADMIN'] } }],
    ['restricted-v2: a user outside of the range', { runAsUser: 1000 }],
    ['restricted-v2: an fsGroup outside of the range', {}, { securityContext: { fsGroup: 1000 } }],
    ['restricted-v2: SELinux options', { seLinuxOptions: { level: 's0' } }],
    ['restricted-v2: a seccomp profile of its own', { seccompProfile: { type: 'Localhost', localhostProfile: 'a' } }],
  ])('%s', (fault, own, spec) => {
    expect(faultsOf({})).toEqual([]);
    expect(faultsOf(own, spec)).toContain(fault);
  });
});

it("the chart's securityContext can be replaced line by line, and removed", () => {
  const contextOf = (values: Values) =>
    sidecarOf(podsOf(render({ mode: 'standalone', config: CONFIG, ...values }))[0]!)?.securityContext;
  expect(contextOf({ securityContext: { runAsUser: 7, runAsNonRoot: null } })).toEqual({
    runAsUser: 7,
    readOnlyRootFilesystem: true,
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    seccompProfile: { type: 'RuntimeDefault' },
  });
});

describe('as OpenShift starts it: an arbitrary user without a name, group 0', () => {
  // Of a namespace's range. Only root can choose it: other users start it as themselves.
  const isRoot = process.getuid?.() === 0;
  const user = isRoot ? { uid: 1_000_650_000, gid: 0 } : undefined;

  it.each(['config-file', 'standalone'])('the example %s serves calls and keeps its state', async (name) => {
    const objects = kustomizeExample(name);
    const pod = podsOf(objects).find((candidate) => sidecarOf(candidate) !== undefined)!;
    const container = sidecarOf(pod)!;
    const secret = { 'quotes-id': 'quotes', 'quotes-secret': 'a-secret-of-quotes' };
    const other = { 'policies-id': 'policies', 'policies-secret': 'a-secret-of-policies' };
    const secrets = {
      'bearer-sidecar-callers': { 'header-value': 'value-of-the-required-field' },
      ...(name === 'config-file' && { 'bearer-sidecar-client': { ...secret, ...other } }),
    };
    await using running = await startContainer({
      name: `any-user-${name}`,
      objects,
      pod,
      container,
      secrets,
      ...(user && { user }),
    });
    const admin = `http://127.0.0.1:${String(running.adminPort)}`;
    await expect.poll(async () => (await call(`${admin}/readyz`)).status).toBe(200);
    const headers = { host: 'partner-api', 'x-sidecar-key': 'value-of-the-required-field' };
    for (const path of ['/quotes', '/policies']) {
      const url = `http://127.0.0.1:${String(running.proxyPort)}${path}`;
      expect((await post(url, {}, name === 'standalone' ? headers : {})).status).toBe(200);
    }
    expect(running.upstream.requests.map(({ path }) => path)).toEqual(['/quotes', '/policies']);
    // One token for each client, or one for both.
    const clients = running.tokens.requests.map(({ headers: { authorization } }) => authorization);
    expect(new Set(clients).size).toBe(name === 'config-file' ? 2 : 1);
    expect(await running.process.stop('SIGTERM')).toEqual({ code: 0, signal: null });
    expect(running.process.stdout()).not.toMatch(/EACCES|permission denied/i);
  });
});
