/**
 * Where a pod's settings and secrets come from: for every combination of sources the chart renders a pod that mounts what its settings name, mounts
 * no Secret that nothing needs, and whose settings the sidecar itself accepts.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load/load.ts';
import { createAssertionIssuer } from '../support/assertion-issuer.ts';
import { makeCertificates } from '../support/certificates.ts';
import { findSchemaFaults } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { findSecurityFaults } from '../support/pod-security.ts';
import { environmentOf, findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import { roundsOf } from '../support/rounds.ts';
import { CONFIG, render, renderInAppChart } from './chart.ts';
import type { Values } from './chart.ts';

const VAULT = '/vault/secrets';
const CLIENT = '/etc/bearer-sidecar/client';

/** Any volume but a Secret. */
const VOLUME_SOURCES: readonly Values[] = [
  { csi: { driver: 'secrets-store.csi.k8s.io', readOnly: true, volumeAttributes: { secretProviderClass: 'a' } } },
  { projected: { sources: [{ configMap: { name: 'a' } }, { configMap: { name: 'b' } }] } },
  { emptyDir: { medium: 'Memory' } },
  { configMap: { name: 'a' } },
  {
    ephemeral: {
      volumeClaimTemplate: { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } } },
    },
  },
];
const SECRET_VOLUME = { secret: { secretName: 'by-volume' } };
const volume = fc.constantFrom(...VOLUME_SOURCES, SECRET_VOLUME);

/** How the client shows who it is, and where its files are. */
const methods = fc.constantFrom(
  undefined,
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
  'tls_client_auth',
  'client_assertion',
  'service_account',
);
const places = fc.oneof(
  fc.constant({ kind: 'default' as const }),
  fc.constant({ kind: 'secret' as const }),
  fc.record({ kind: fc.constant('volume' as const), source: volume }),
  fc.constant({ kind: 'vault' as const }),
);
const files = fc.oneof(
  fc.constant({ kind: 'none' as const }),
  fc.record({ kind: fc.constantFrom('object' as const, 'text' as const) }),
  fc.record({ kind: fc.constant('volume' as const), source: volume }),
  fc.constant({ kind: 'elsewhere' as const }),
);
const combination = fc.record({
  mode: fc.constantFrom('native', 'classic', 'standalone'),
  method: methods,
  place: places,
  file: files,
  /** Whether the id is a setting, and not a file. */
  plainId: fc.boolean(),
  /** Whether the secret comes as a variable, by reference. */
  secretVariable: fc.boolean(),
  /** The same of what callers send. */
  headerVariable: fc.boolean(),
  fleet: fc.constantFrom('none', 'file', 'variable'),
});
type Combination = typeof combination extends fc.Arbitrary<infer T> ? T : never;

const byReference = (name: string) => ({ name, valueFrom: { secretKeyRef: { name: 'variables', key: name } } });
const sendsSecret = ({ method = 'client_secret_basic' }: Combination) =>
  method === 'client_secret_basic' || method === 'client_secret_post';

/** The settings of the client beyond what the chart sets, by the names of their files in one folder. */
function clientSettings({ method, plainId, place, secretVariable, ...rest }: Combination, folder: string): Values {
  const isElsewhere = place.kind === 'vault';
  const settings: Record<string, unknown> = {
    ...(method !== undefined && method !== 'service_account' && { SIDECAR_AUTH_METHOD: method }),
    ...(plainId ? { SIDECAR_CLIENT_ID: 'client' } : isElsewhere && { SIDECAR_CLIENT_ID_FILE: `${folder}/client-id` }),
  };
  if (method === 'private_key_jwt') settings.SIDECAR_AUTH_PRIVATE_KEY_FILE = `${folder}/private-key.pem`;
  if (method === 'tls_client_auth') {
    settings.SIDECAR_AUTH_TLS_CERTIFICATE_FILE = `${folder}/tls.crt`;
    settings.SIDECAR_AUTH_TLS_KEY_FILE = `${folder}/tls.key`;
  }
  if (method === 'client_assertion') {
    settings.SIDECAR_AUTH_ASSERTION_FILE = `${folder}/token`;
    settings.SIDECAR_AUTH_ASSERTION_FILE_AUDIENCE = 'api://AzureADTokenExchange';
  }
  const needsSecret = sendsSecret({ method, plainId, place, secretVariable, ...rest });
  if (isElsewhere && needsSecret && !secretVariable) settings.SIDECAR_CLIENT_SECRET_FILE = `${folder}/client-secret`;
  return settings;
}

const FILE_CONTENT = {
  upstream: { baseUrl: 'https://api.partner.example/v1' },
  auth: {
    url: 'https://auth.partner.example',
    clientIdFile: `${CLIENT}/client-id`,
    clientSecretFile: `${CLIENT}/client-secret`,
    audience: 'https://api.partner.example/',
  },
};

function toValues(combined: Combination): Values {
  const { mode, method, place, file, secretVariable, headerVariable, fleet } = combined;
  const folder = place.kind === 'vault' ? VAULT : CLIENT;
  const hasFile = file.kind !== 'none';
  const extraEnv = [
    ...(!hasFile && secretVariable && sendsSecret(combined) ? [byReference('SIDECAR_CLIENT_SECRET')] : []),
    ...(mode === 'standalone' && headerVariable ? [byReference('SIDECAR_LISTEN_REQUIRED_HEADER_VALUE')] : []),
    ...(fleet === 'variable' ? [byReference('SIDECAR_REDIS_URL')] : []),
  ];
  const isServiceAccount = !hasFile && method === 'service_account';
  const config = hasFile
    ? { ...(file.kind === 'elsewhere' && { SIDECAR_CONFIG: '/elsewhere/sidecar.yaml' }) }
    : { ...CONFIG, ...(!isServiceAccount && clientSettings(combined, folder)) };
  const extra = [
    ...(place.kind === 'vault' && !hasFile ? [['vault', VAULT]] : []),
    ...(file.kind === 'elsewhere' ? [['elsewhere', '/elsewhere']] : []),
  ] as const;
  return {
    mode,
    config,
    extraEnv,
    client: {
      ...(place.kind === 'secret' && { secretName: 'by-name' }),
      ...(place.kind === 'volume' && { volume: place.source }),
      ...(isServiceAccount && { assertion: { audience: 'api://AzureADTokenExchange', clientId: 'client' } }),
    },
    ...(file.kind === 'object' && { configFile: { content: FILE_CONTENT } }),
    ...(file.kind === 'text' && { configFile: { content: JSON.stringify(FILE_CONTENT) } }),
    ...(file.kind === 'volume' && { configFile: { volume: file.source } }),
    ...(fleet !== 'none' && { fleet: { secretName: 'redis' } }),
    extraVolumes: extra.map(([name]) => ({ name, emptyDir: {} })),
    extraVolumeMounts: extra.map(([name, mountPath]) => ({ name, mountPath, readOnly: true })),
  };
}

/** The Secrets that the pod cannot do without, derived from the combination alone. */
function expectedSecrets(combined: Combination): string[] {
  const { mode, method, place, file, plainId, secretVariable, headerVariable, fleet } = combined;
  const secretOf = (source: Values): string[] => (source === SECRET_VOLUME ? ['by-volume'] : []);
  const namesClientFile =
    file.kind === 'none'
      ? method !== 'service_account' &&
        place.kind !== 'vault' &&
        (!plainId || !sendsSecret(combined) || !secretVariable)
      : file.kind === 'object' || file.kind === 'text';
  const client = {
    default: () => (namesClientFile ? ['bearer-sidecar-client'] : []),
    vault: () => (namesClientFile ? ['bearer-sidecar-client'] : []),
    secret: () => ['by-name'],
    volume: () => (place.kind === 'volume' ? secretOf(place.source) : []),
  }[place.kind]();
  return [
    ...client,
    ...(file.kind === 'volume' ? secretOf(file.source) : []),
    ...(fleet === 'file' ? ['redis'] : []),
    ...(mode === 'standalone' && !headerVariable ? ['bearer-sidecar-callers'] : []),
  ].sort();
}

let folder = '';
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'sources-'));
  using certificates = makeCertificates();
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issued = certificates.issue('legacy-app');
  const contents = {
    'client-id': 'client',
    'client-secret': 'a-secret-of-the-client',
    'private-key.pem': privateKey.export({ type: 'pkcs8', format: 'pem' }),
    'tls.crt': readFileSync(issued.certificateFile, 'utf8'),
    'tls.key': readFileSync(issued.keyFile, 'utf8'),
    token: createAssertionIssuer().issue(),
    'redis-url': 'redis://redis:6379',
    'header-value': 'a-value-of-callers',
  };
  for (const [name, content] of Object.entries(contents)) writeFileSync(join(folder, name), content);
});
afterAll(() => {
  rmSync(folder, { recursive: true });
});

/** The variables as the container has them, with files of this machine. */
function localEnvironment(declared: Readonly<Record<string, string>>, content: string | undefined) {
  const toLocal = (path: string) => join(folder, basename(path));
  if (content !== undefined)
    writeFileSync(join(folder, 'sidecar.yaml'), content.replaceAll(`${CLIENT}/`, `${folder}/`));
  return Object.fromEntries(
    Object.entries(declared).map(([name, value]) => [name, value.startsWith('/') ? toLocal(value) : value]),
  );
}

const VARIABLES: Readonly<Record<string, string>> = {
  SIDECAR_CLIENT_SECRET: 'a-secret-of-the-client',
  SIDECAR_LISTEN_REQUIRED_HEADER_VALUE: 'a-value-of-callers',
  SIDECAR_REDIS_URL: 'redis://redis:6379',
};

it('any combination of sources renders, mounts what it names, and has no Secret that is not used', () => {
  fc.assert(
    fc.property(combination, (combined) => {
      const values = toValues(combined);
      const objects = (
        combined.mode === 'standalone' ? render(values) : renderInAppChart(values)
      ) as readonly KubernetesObject[];
      expect(findBrokenReferences(objects)).toEqual([]);
      expect(
        findSchemaFaults(JSON.parse(JSON.stringify(objects, (_, v: unknown) => v ?? undefined)) as KubernetesObject[]),
      ).toEqual([]);
      const pod = podsOf(objects)[0]!;
      const container = sidecarOf(pod)!;
      expect(findSecurityFaults(pod, [container])).toEqual([]);

      const mounts = container.volumeMounts ?? [];
      expect(mounts.map(({ name }) => name).sort()).toEqual(pod.volumes.map(({ name }) => name).sort());
      const own = objects.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
      const content = objects.find(({ metadata }) => metadata.name.endsWith('-file'))?.data?.['sidecar.yaml'];
      expect(content === undefined).toBe(!['object', 'text'].includes(combined.file.kind));
      expect(own).toHaveLength(content === undefined ? 1 : 2);

      const declared = environmentOf(container, objects);
      const paths = Object.values(declared).filter((value) => value.startsWith('/'));
      for (const path of paths)
        expect(
          mounts.some(({ mountPath }) => path.startsWith(`${mountPath}/`)),
          path,
        ).toBe(true);
      const secrets = pod.volumes.flatMap(({ secret }) => secret?.secretName ?? []);
      expect(secrets.sort()).toEqual(expectedSecrets(combined));

      for (const { name } of container.env ?? []) declared[name] = VARIABLES[name] ?? '';
      const file = content ?? JSON.stringify(FILE_CONTENT);
      const result = loadConfig({ env: localEnvironment(declared, file) });
      expect(result.ok ? [] : result.problems).toEqual([]);
    }),
    { numRuns: roundsOf({ check: 40, soak: 200 }) },
  );
});
