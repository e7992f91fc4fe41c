/** Values that the chart accepts and refuses, and the objects that they give: conditions, old clusters, other clients. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CHART, helm } from '../support/helm.ts';
import { findSchemaFaults } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { environmentOf, findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import { CONFIG, render, renderInAppChart, writeValues } from './chart.ts';
import type { Values } from './chart.ts';

describe('values', () => {
  const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8')) as object;
  const validate = new Ajv({ strict: true, strictRequired: false, allowUnionTypes: true }).compile(schema);
  const defaults = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Values;

  it('accepts the defaults with the required settings', () => {
    expect([validate({ ...defaults, config: CONFIG }), validate.errors]).toEqual([true, null]);
  });

  it.each<[string, Values]>([
    ['no settings', { config: {} }],
    ['nothing to ask a token for', { config: { ...CONFIG, SIDECAR_AUDIENCE: undefined } }],
    ['a secret among the settings', { config: { ...CONFIG, SIDECAR_CLIENT_SECRET: 'x' } }],
    ['the id, which the chart names a file for', { config: { ...CONFIG, SIDECAR_CLIENT_ID: 'x' } }],
    ['the file of the id', { config: { ...CONFIG, SIDECAR_CLIENT_ID_FILE: '/x' } }],
    ['the file of the secret', { config: { ...CONFIG, SIDECAR_CLIENT_SECRET_FILE: '/x' } }],
    ['a variable of something else', { config: { ...CONFIG, NODE_OPTIONS: '--inspect' } }],
    ['a name that is no variable', { config: { ...CONFIG, baseUrl: 'x' } }],
    ['a list as a value', { config: { ...CONFIG, SIDECAR_SCOPE: ['a'] } }],
    ['an unknown mode', { config: CONFIG, mode: 'ambient' }],
    ['an unknown key', { config: CONFIG, replicaCount: 2 }],
    ['an unknown key below', { config: CONFIG, networkPolicy: { enable: true } }],
    ['a volume without a name', { config: CONFIG, extraVolumes: [{ emptyDir: {} }] }],
    ['a mount that is nowhere', { config: CONFIG, extraVolumeMounts: [{ name: 'x', mountPath: 'x' }] }],
    ['an audience of an assertion without the client id', { config: CONFIG, client: { assertion: { audience: 'a' } } }],
    ['enabled, but not whether', { config: CONFIG, enabled: 'perhaps' }],
    ['a port that is none', { config: CONFIG, networkPolicy: { egressPorts: [70_000] } }],
  ])('%s: refused by helm and by the schema alone', (_, values) => {
    expect(validate({ ...defaults, ...(JSON.parse(JSON.stringify(values)) as Values) })).toBe(false);
    const { status, stderr } = helm('template', 'partner', CHART, '--values', writeValues(values));
    expect(status).not.toBe(0);
    expect(stderr).toContain("values don't meet the specifications of the schema");
  });
});

describe('as a dependency with a condition', () => {
  const kindsOf = (objects: readonly KubernetesObject[]) => objects.map(({ kind }) => kind).sort();

  it('that holds: includes the sidecar', () => {
    const objects = renderInAppChart({ enabled: true }, 'bearer-sidecar.enabled');
    expect(kindsOf(objects)).toEqual(['ConfigMap', 'Deployment']);
    expect(podsOf(objects).map((pod) => sidecarOf(pod)?.name)).toEqual(['bearer-sidecar']);
    expect(objects).toEqual(renderInAppChart({}));
  });

  it('that does not hold: only the app', () => {
    const objects = renderInAppChart({ enabled: false }, 'bearer-sidecar.enabled');
    expect(kindsOf(objects)).toEqual(['Deployment']);
    expect(podsOf(objects).map((pod) => sidecarOf(pod))).toEqual([undefined]);
  });
});

describe('the version of the cluster', () => {
  const attempt = (mode: string, version: string) =>
    helm('template', 'partner', CHART, '--values', writeValues({ config: CONFIG, mode }), '--kube-version', version);

  it.each(['1.25.0', '1.28.15', '1.28.9-eks-036c24b'])(
    '%s: native is refused in one sentence, classic is not',
    (version) => {
      const { status, stderr } = attempt('native', version);
      expect(status).not.toBe(0);
      expect(stderr).toContain(
        `mode: native needs Kubernetes 1.29 or later, and this is v${version}: set mode: classic, or tell helm template`,
      );
      for (const mode of ['classic', 'standalone']) expect(attempt(mode, version).status).toBe(0);
    },
  );

  it.each(['1.29.0', '1.29.0-gke.1381000', '1.34.1'])('%s: native is fine', (version) => {
    expect(attempt('native', version).status).toBe(0);
  });
});

const settingsOf = (objects: readonly KubernetesObject[]) => environmentOf(sidecarOf(podsOf(objects)[0]!)!, objects);

it('a client without a secret has no secret file, and further volumes are mounted', () => {
  const objects = renderInAppChart({
    client: { clientSecretKey: '' },
    extraVolumes: [{ name: 'authorities', configMap: { name: 'company-authorities' } }],
    extraVolumeMounts: [{ name: 'authorities', mountPath: '/etc/authorities', readOnly: true }],
  });
  expect(findSchemaFaults(objects)).toEqual([]);
  expect(findBrokenReferences(objects)).toEqual([]);
  expect(Object.keys(settingsOf(objects))).not.toContain('SIDECAR_CLIENT_SECRET_FILE');
  expect(settingsOf(objects)).toMatchObject({ SIDECAR_CLIENT_ID_FILE: '/etc/bearer-sidecar/client/client-id' });
  const [pod] = podsOf(objects);
  expect(sidecarOf(pod!)?.volumeMounts?.at(-1)?.mountPath).toBe('/etc/authorities');
  expect(pod?.volumes.at(-1)).toEqual({ name: 'authorities', configMap: { name: 'company-authorities' } });
});

it('settings override what the chart sets, and other variables are kept', () => {
  const config = {
    ...CONFIG,
    SIDECAR_THROTTLE_STATE_FILE: '/var/lib/bearer-sidecar/another.json',
    SIDECAR_AUTH_CACHE_FILE: '',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.observability:4318',
    HTTPS_PROXY: 'http://proxy.example:3128',
    HTTP_PROXY: 'http://proxy.example:3128',
    NO_PROXY: '.example',
    NODE_EXTRA_CA_CERTS: '/etc/authorities/ca.crt',
  };
  const settings = settingsOf(render({ mode: 'standalone', config }));
  expect(settings).toMatchObject(config);
});

it('the policy allows egress to the Redis of a fleet, at its port, once', () => {
  const portsOf = (values: Values) => {
    const objects = render({ networkPolicy: { enabled: true }, ...values });
    const policy = objects.find(({ metadata }) => metadata.name.endsWith('-egress'))?.spec as {
      readonly egress: readonly { readonly ports: readonly { readonly port: number }[] }[];
    };
    return policy.egress[1]?.ports.map(({ port }) => port);
  };
  expect(portsOf({})).toEqual([443]);
  expect(portsOf({ fleet: { secretName: 'redis' } })).toEqual([443, 6379]);
  expect(portsOf({ fleet: { secretName: 'redis', port: 6380 } })).toEqual([443, 6380]);
  const egressPorts = [443, 6379];
  expect(portsOf({ fleet: { secretName: 'redis' }, networkPolicy: { enabled: true, egressPorts } })).toEqual(
    egressPorts,
  );
});

it("the policy leaves the app's ports to other policies when it is set so", () => {
  const rulesOf = (networkPolicy: Values) => {
    const objects = render({ networkPolicy: { enabled: true, ...networkPolicy } });
    const policy = objects.find(({ metadata }) => metadata.name.endsWith('-ingress'))?.spec as {
      readonly ingress: readonly { readonly from?: unknown }[];
    };
    return policy.ingress.map(({ from }) => from === undefined);
  };
  expect(rulesOf({})).toEqual([false, true]);
  expect(rulesOf({ openAppPorts: false })).toEqual([false]);
});

it('standalone is reachable under the full name of its Service, in a cluster with any domain', () => {
  const hostsOf = (standalone: Values) =>
    settingsOf(render({ mode: 'standalone', standalone }, 'partner', '--namespace', 'sales')).SIDECAR_ALLOWED_HOSTS;
  expect(hostsOf({})?.split(',').at(-1)).toBe('partner-bearer-sidecar.sales.svc.cluster.local');
  expect(hostsOf({ clusterDomain: 'corp.example' })?.split(',').at(-1)).toBe(
    'partner-bearer-sidecar.sales.svc.corp.example',
  );
});
