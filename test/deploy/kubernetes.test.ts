/** deploy/kubernetes as `kubectl kustomize` renders it: valid for the API, sound in itself, and as promised in its comments. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CHART } from '../support/helm.ts';
import { KUBERNETES_FOLDER, kustomize, kustomizeExample } from '../support/kustomize.ts';
import { findSchemaFaults, findUnknownFields, parseManifests } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { findSecurityFaults } from '../support/pod-security.ts';
import { environmentOf, findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import { DOCS, kustomizeOwn } from './own-kustomization.ts';

/** Those with the sidecar; `app` and `job` are what it is added to. */
const EXAMPLES = readdirSync(join(KUBERNETES_FOLDER, 'examples')).filter((name) => !['app', 'job'].includes(name));

/** Where it is not the Secret's. */
const CLIENT_SECRET_FILES: Readonly<Record<string, string>> = {
  // The file names those of each credential.
  'config-file': '',
  'vault-agent': '/vault/secrets/client-secret',
};

const rendered = new Map(EXAMPLES.map((name) => [name, kustomizeExample(name)]));
const objectsOf = (name: string): KubernetesObject[] => rendered.get(name) ?? [];
const sidecarPodsOf = (objects: readonly KubernetesObject[]) =>
  podsOf(objects).filter((pod) => sidecarOf(pod) !== undefined);

/** The one with these words in it. */
const patchOfDocs = (words: string) =>
  [...DOCS.matchAll(/^patches:\n[\s\S]*?(?=```)/gm)].find(([patch]) => patch.includes(words))?.[0] ?? '';

it('says which version rendered', () => {
  const { stdout } = spawnSync('kubectl', ['version', '--client'], { encoding: 'utf8' });
  console.info(`kubectl: ${stdout.trim().replaceAll('\n', ', ')}`);
  expect(stdout).toMatch(/Kustomize Version: v[5-9]/);
});

describe.each(EXAMPLES)('the example %s', (name) => {
  const objects = objectsOf(name);

  it('is valid by the schemas of Kubernetes', () => {
    expect(objects.length).toBeGreaterThan(2);
    expect(findSchemaFaults(objects)).toEqual([]);
  });

  it('refers only to existing objects', () => {
    expect(findBrokenReferences(objects)).toEqual([]);
  });

  it('has one pod with the sidecar, hardened, with its secrets as files and room to drain', () => {
    const [pod, ...others] = sidecarPodsOf(objects);
    expect(others).toEqual([]);
    const container = sidecarOf(pod!)!;
    expect(container.securityContext).toEqual({
      runAsNonRoot: true,
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    });
    const env = environmentOf(container, objects);
    expect(env).toMatchObject({
      SIDECAR_ADMIN_LISTEN: '0.0.0.0:19464',
      SIDECAR_CLIENT_SECRET_FILE: CLIENT_SECRET_FILES[name] ?? '/etc/bearer-sidecar/client/client-secret',
    });
    expect(Object.keys(env)).not.toContain('SIDECAR_CLIENT_SECRET');
    expect(Number(env.SIDECAR_DRAIN_MS)).toBeLessThan(pod!.terminationGracePeriodSeconds * 1000);
    expect(Number(env.SIDECAR_DRAIN_DELAY_MS ?? 0)).toBeLessThan(Number(env.SIDECAR_DRAIN_MS));
    expect(container.resources?.limits).toEqual({ memory: '256Mi' });
    expect(container.startupProbe?.httpGet?.path).toBe('/livez');
    expect(container.livenessProbe?.httpGet?.path).toBe('/livez');
    expect(container.readinessProbe?.httpGet?.path).toBe(name === 'standalone' ? '/readyz' : undefined);
  });
});

it('no object has a field that Kubernetes does not know', () => {
  expect(findUnknownFields(EXAMPLES.flatMap(objectsOf))).toEqual([]);
});

it('native: the first init container, with restartPolicy Always', () => {
  for (const name of ['native', 'job-native', 'fleet']) {
    const [pod] = sidecarPodsOf(objectsOf(name));
    expect(pod?.initContainers[0]).toMatchObject({ name: 'bearer-sidecar', restartPolicy: 'Always' });
    expect(pod?.containers).toHaveLength(1);
  }
});

it('classic: a container after the app, which runs on for 15 s', () => {
  const objects = objectsOf('classic');
  const [pod] = sidecarPodsOf(objects);
  expect(pod?.initContainers).toEqual([]);
  expect(pod?.containers.map(({ name }) => name)).toEqual(['app', 'bearer-sidecar']);
  expect(environmentOf(pod!.containers[1]!, objects)).toMatchObject({ SIDECAR_DRAIN_DELAY_MS: '15000' });
});

it('job-classic: /quitquitquit is enabled and called', () => {
  const objects = objectsOf('job-classic');
  const [pod] = sidecarPodsOf(objects);
  const [work, sidecar] = pod!.containers;
  expect(environmentOf(sidecar!, objects)).toMatchObject({ SIDECAR_ADMIN_ALLOW_QUIT: 'true' });
  expect(work?.command?.join(' ')).toContain('http://localhost:19464/quitquitquit');
  // Work that is killed asks for nothing.
  expect(objects.find(({ kind }) => kind === 'Job')?.spec).toMatchObject({ activeDeadlineSeconds: 3600 });
});

it('fleet: the sidecars reach Valkey, and Valkey has no sidecar', () => {
  const objects = objectsOf('fleet');
  const pods = podsOf(objects);
  expect(pods.map((pod) => [pod.owner, sidecarOf(pod) !== undefined])).toEqual([
    ['Deployment legacy-app', true],
    ['Deployment valkey', false],
  ]);
  const [pod] = sidecarPodsOf(objects);
  const { SIDECAR_REDIS_URL_FILE: file = '' } = environmentOf(sidecarOf(pod!)!, objects);
  const mount = sidecarOf(pod!)!.volumeMounts?.find(({ mountPath }) => file.startsWith(`${mountPath}/`));
  expect(pod?.volumes.find(({ name }) => name === mount?.name)?.secret?.secretName).toBe('bearer-sidecar-redis');
});

it('the commands of the documentation make every Secret that the examples name', () => {
  const folder = mkdtempSync(join(tmpdir(), 'secrets-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  const commands = [...DOCS.matchAll(/^kubectl (create secret generic .*)$/gm)].map(([, words = '']) =>
    words.split(' '),
  );
  const made = commands.flatMap((words) => {
    for (const word of words.filter((candidate) => candidate.startsWith('--from-file=')))
      writeFileSync(join(folder, word.slice('--from-file='.length)), 'some text');
    const { stdout, stderr } = spawnSync('kubectl', [...words, '--dry-run=client', '--output=yaml'], {
      cwd: folder,
      encoding: 'utf8',
      env: { ...process.env, KUBECONFIG: join(folder, 'none') },
    });
    expect(stderr).toBe('');
    return parseManifests(stdout);
  });
  expect(findSchemaFaults(made)).toEqual([]);
  expect(made.map(({ metadata, data = {} }) => [metadata.name, ...Object.keys(data).sort()])).toEqual([
    ['bearer-sidecar-client', 'client-id', 'client-secret'],
    ['bearer-sidecar-callers', 'header-value'],
    ['bearer-sidecar-client', 'client-id', 'private-key.pem'],
    ['bearer-sidecar-redis', 'password', 'redis-url'],
  ]);
  const named = EXAMPLES.flatMap((name) => podsOf(objectsOf(name)).flatMap(({ volumes }) => volumes));
  expect(made.map(({ metadata }) => metadata.name)).toEqual(
    expect.arrayContaining(named.flatMap(({ secret }) => secret?.secretName ?? [])),
  );
});

describe('in a kustomization of a user', () => {
  it('as docs/kubernetes-kustomize.md has it: settings of their own win over every one of the component', () => {
    const documented = /```yaml\n(resources: [\s\S]*?)```/.exec(DOCS)?.[1] ?? '';
    const deployment = readFileSync(join(KUBERNETES_FOLDER, 'examples', 'app', 'deployment.yaml'), 'utf8');
    const files = { 'deployment.yaml': deployment };
    const settingsOf = (objects: readonly KubernetesObject[]) =>
      environmentOf(sidecarOf(sidecarPodsOf(objects)[0]!)!, objects);
    const names = Object.keys(settingsOf(kustomizeOwn(documented, files))).filter((name) => !documented.includes(name));
    expect(names).toContain('SIDECAR_AUTH_CACHE_FILE');
    const own = Object.fromEntries(names.map((name) => [name, 'own']));
    const literals = names.map((name) => `      - ${name}=own\n`).join('');
    expect(settingsOf(kustomizeOwn(documented + literals, files))).toMatchObject(own);
  });

  it('the first example of docs/kubernetes-kustomize.md, beside a copy of the components', () => {
    const documented = /```yaml\n(resources: [\s\S]*?)```/.exec(DOCS)?.[1] ?? '';
    const deployment = readFileSync(join(KUBERNETES_FOLDER, 'examples', 'app', 'deployment.yaml'), 'utf8');
    const objects = kustomizeOwn(`${documented}      - SIDECAR_DRAIN_MS=5000\n`, { 'deployment.yaml': deployment });
    const container = sidecarOf(sidecarPodsOf(objects)[0]!)!;
    expect(container.image).toBe('registry.example/bearer-sidecar:0.1.0');
    expect(environmentOf(container, objects)).toMatchObject({
      SIDECAR_BASE_URL: 'https://api.partner.example/v1',
      SIDECAR_DRAIN_MS: '5000',
      SIDECAR_ADMIN_LISTEN: '0.0.0.0:19464',
    });
    expect(findBrokenReferences(objects)).toEqual([]);
  });

  it('the configuration file of docs/kubernetes-kustomize.md, without a ConfigMap of variables', () => {
    const documented = /```yaml\n(resources: [^`]*bearer-sidecar\/config-file[\s\S]*?)```/.exec(DOCS)?.[1] ?? '';
    const app = readFileSync(join(KUBERNETES_FOLDER, 'examples', 'app', 'deployment.yaml'), 'utf8');
    const objects = kustomizeOwn(documented, { 'deployment.yaml': app, 'sidecar.yaml': 'routes: []\n' });
    expect(findSchemaFaults(objects)).toEqual([]);
    expect(findBrokenReferences(objects)).toEqual([]);
    const [pod] = sidecarPodsOf(objects);
    const { configMap } = pod!.volumes.find(({ name }) => name === 'bearer-sidecar-config') ?? {};
    const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMap?.name);
    expect(map?.data).toEqual({ 'sidecar.yaml': 'routes: []\n' });
    expect(environmentOf(sidecarOf(pod!)!, objects)).toMatchObject({
      SIDECAR_CONFIG: '/etc/bearer-sidecar/config/sidecar.yaml',
      SIDECAR_CLIENT_ID_FILE: '',
    });
  });

  it('classic and fleet together, and without the policy for what the pod may reach', () => {
    const objects = kustomizeOwn(`
resources: [deploy/kubernetes/examples/app, deploy/kubernetes/examples/job]
components:
  - deploy/kubernetes/components/sidecar
  - deploy/kubernetes/components/fleet
  - deploy/kubernetes/components/classic
  - deploy/kubernetes/components/network-policy
configMapGenerator:
  - { name: bearer-sidecar, literals: [SIDECAR_BASE_URL=https://api.partner.example] }
${patchOfDocs('bearer-sidecar-egress')}`);
    expect(findBrokenReferences(objects)).toEqual([]);
    const pods = sidecarPodsOf(objects);
    expect(pods.map(({ owner, initContainers }) => [owner, initContainers.length])).toEqual([
      ['Deployment legacy-app', 0],
      ['Job legacy-report', 0],
    ]);
    for (const pod of pods)
      expect(sidecarOf(pod)?.volumeMounts?.map(({ name }) => name)).toContain('bearer-sidecar-redis');
    expect(objects.filter(({ kind }) => kind === 'NetworkPolicy').map(({ metadata }) => metadata.name)).toEqual([
      'bearer-sidecar-admin',
    ]);
  });
});

it('the lines of the README work in a folder beside the clone', () => {
  const readme = readFileSync(join(KUBERNETES_FOLDER, '..', '..', 'README.md'), 'utf8');
  const [, from = '', to = ''] = /^cp -r \.\.\/bearer-sidecar\/(\S+) (\S+)$/m.exec(readme) ?? [];
  const [, lines = ''] = /^```yaml\n(#[^\n]*kustomization\.yaml[\s\S]*?)^```$/m.exec(readme) ?? [];
  const folder = mkdtempSync(join(tmpdir(), 'app-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  cpSync(join(KUBERNETES_FOLDER, '..', '..', from), join(folder, to), { recursive: true });
  cpSync(join(KUBERNETES_FOLDER, 'examples', 'app'), join(folder, 'app'), { recursive: true });
  writeFileSync(join(folder, 'kustomization.yaml'), `resources: [app]\n${lines}`);
  const objects = kustomize(folder);
  expect(findBrokenReferences(objects)).toEqual([]);
  const pods = sidecarPodsOf(objects);
  expect(pods).toHaveLength(1);
  expect(sidecarOf(pods[0]!)?.image).toBe('registry.example/bearer-sidecar:0.1.0');
});

describe('a patch that the pages on Kubernetes show', () => {
  const patched = (patch: string) =>
    kustomizeOwn(`
resources: [deploy/kubernetes/examples/app]
components:
  - deploy/kubernetes/components/sidecar
  - deploy/kubernetes/components/classic
  - deploy/kubernetes/components/monitoring
  - deploy/kubernetes/components/network-policy
configMapGenerator:
  - { name: bearer-sidecar, literals: [SIDECAR_BASE_URL=https://api.partner.example] }
${patch}`);

  it("leaves the app's ports to other policies", () => {
    const rulesOf = (objects: readonly KubernetesObject[]) =>
      (objects.find(({ metadata }) => metadata.name === 'bearer-sidecar-admin')?.spec as { ingress: unknown[] })
        .ingress;
    const [admin, ...others] = rulesOf(patched(''));
    expect(others).toHaveLength(1);
    expect(rulesOf(patched(patchOfDocs('bearer-sidecar-admin')))).toEqual([admin]);
  });

  it('gives the pod more time to end than the component did', () => {
    const graceOf = (objects: readonly KubernetesObject[]) =>
      /"terminationGracePeriodSeconds":(\d+)/.exec(JSON.stringify(objects))?.[1];
    expect(graceOf(patched(''))).toBe('45');
    expect(graceOf(patched(patchOfDocs('terminationGracePeriodSeconds')))).toBe('120');
  });

  it("gives the client's volume another source", () => {
    const volumes = sidecarPodsOf(patched(patchOfDocs('secret: null')))[0]?.volumes ?? [];
    const client = volumes.find(({ name }) => name === 'bearer-sidecar-client');
    expect(Object.keys(client ?? {}).sort()).toEqual(['name', 'projected']);
    expect(client?.projected?.sources).toHaveLength(2);
  });

  it('lets OpenShift choose the user of the Valkey', () => {
    const objects = kustomizeOwn(`resources: [deploy/kubernetes/examples/fleet]\n${patchOfDocs('name: valkey')}`);
    for (const pod of podsOf(objects)) {
      const checked = pod.owner === 'Deployment valkey' ? pod.containers : [sidecarOf(pod)!];
      expect(findSecurityFaults(pod, checked)).toEqual([]);
    }
  });

  it('labels what an operator is to find', () => {
    const labelled = patched(patchOfDocs('kube-prometheus-stack')).filter(({ metadata }) => metadata.labels?.release);
    expect(labelled.map(({ kind }) => kind).sort()).toEqual(['PodMonitor', 'PrometheusRule']);
  });
});

it('the policy that docs/tracing.md shows lets sidecars out to the collector', () => {
  const page = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'tracing.md'), 'utf8');
  const policies = [...page.matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, block = '']) => parseManifests(block));
  expect(policies.map(({ kind }) => kind)).toEqual(['NetworkPolicy']);
  expect(findSchemaFaults(policies)).toEqual([]);
  expect(findBrokenReferences([...objectsOf('native'), ...policies])).toEqual([]);
});

it('the questions of platform teams name values that the chart has', () => {
  const section = DOCS.split('## Questions\n')[1]?.split(/^## /m)[0] ?? '';
  interface Node {
    readonly properties?: Readonly<Record<string, Node>>;
  }
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as Node;
  const folders = [...section.matchAll(/(component|example) `([a-z-]+)`/g)];
  expect(folders.length).toBeGreaterThan(3);
  for (const [, kind = '', name = ''] of folders)
    expect(existsSync(join(KUBERNETES_FOLDER, `${kind}s`, name)), `${kind} ${name}`).toBe(true);
  const named = [...section.replaceAll(/(component|example) `[a-z-]+`/g, '').matchAll(/`([a-z]\w*(?:\.\w+)*)`/g)].map(
    ([, path = '']) => path,
  );
  // That one is of kustomize.
  const own = named.filter((path) => path !== 'images');
  expect(own.length).toBeGreaterThan(25);
  for (const path of own) {
    const [first = '', second] = path.split('.');
    const node = schema.properties?.[first];
    expect(node, path).toBeDefined();
    if (second !== undefined && node?.properties !== undefined) expect(Object.keys(node.properties)).toContain(second);
  }
});

it('a CronJob gets the same pod as a Job', () => {
  const template = `{ template: { spec: { restartPolicy: Never, containers: [{ name: work, image: work:1 }] } } }`;
  const work = `
{ apiVersion: batch/v1, kind: Job, metadata: { name: work }, spec: ${template} }
---
{ apiVersion: batch/v1, kind: CronJob, metadata: { name: work }, spec: { schedule: '0 3 * * *', jobTemplate: { spec: ${template} } } }
`;
  for (const [components, volume] of [
    ['[sidecar, fleet]', 'bearer-sidecar-redis'],
    ['[sidecar, fleet, classic]', 'bearer-sidecar-redis'],
    ['[sidecar, config-file, client-csi]', 'bearer-sidecar-config'],
    ['[sidecar, client-csi, config-file, fleet, classic]', 'bearer-sidecar-config'],
  ] as const) {
    const objects = kustomizeOwn(
      `resources: [work.yaml]
components: ${components.replaceAll(/[a-z-]+/g, 'deploy/kubernetes/components/$&')}
configMapGenerator:
  - { name: bearer-sidecar, literals: [SIDECAR_BASE_URL=https://api.partner.example] }
`,
      { 'work.yaml': work },
    );
    expect(findSchemaFaults(objects)).toEqual([]);
    const [first, second] = sidecarPodsOf(objects).map((pod) => ({ ...pod, owner: 'either' }));
    expect(first).toEqual(second);
    expect(first?.volumes.map(({ name }) => name)).toContain(volume);
    // The component that replaces the Secret leaves nothing of it.
    const client = first?.volumes.find(({ name }) => name === 'bearer-sidecar-client');
    expect(Object.keys(client ?? {}).sort()).toEqual(components.includes('csi') ? ['csi', 'name'] : ['name', 'secret']);
  }
});

it('each check finds the fault in a wrong manifest', () => {
  const wrong = parseManifests(readFileSync(join(import.meta.dirname, 'fixtures', 'wrong.yaml'), 'utf8'));
  expect(findSchemaFaults(wrong).join()).toMatch(/replicas/);
  expect(findUnknownFields(wrong).join()).toMatch(/restartPolcy/);
  expect(findBrokenReferences(wrong)).toEqual([
    'Deployment wrong: selects none of its own pods',
    'Deployment wrong: bearer-sidecar: no port nowhere',
    'Deployment wrong: bearer-sidecar: no volume nowhere',
    'Deployment wrong: bearer-sidecar: no ConfigMap nowhere',
  ]);
});
