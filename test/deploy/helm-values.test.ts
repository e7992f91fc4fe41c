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

  it('accepts the defaults, and with the required settings', () => {
    expect([validate(defaults), validate.errors]).toEqual([true, null]);
    expect([validate({ ...defaults, config: CONFIG }), validate.errors]).toEqual([true, null]);
  });

  it('each has a default, and each of the schema a description', () => {
    const described = (properties: Record<string, SchemaNode>, path = ''): string[] =>
      Object.entries(properties).flatMap(([name, node]) => [
        ...(node.description === undefined ? [path + name] : []),
        ...described(node.properties ?? {}, `${path + name}.`),
      ]);
    const { properties = {} } = schema as SchemaNode;
    // Parts of Kubernetes' own types.
    const foreign = /^(extraVolumes|extraVolumeMounts|topologySpreadConstraints|imagePullSecrets|.*\.volume\.name)/;
    expect(described(properties).filter((name) => !foreign.test(name))).toEqual([]);
    expect(Object.keys(properties).filter((name) => !['global', 'enabled'].includes(name))).toEqual(
      expect.arrayContaining(Object.keys(defaults)),
    );
    expect(Object.keys(defaults)).toEqual(
      expect.arrayContaining(Object.keys(properties).filter((name) => !['global', 'enabled'].includes(name))),
    );
  });

  it.each<[string, Values]>([
    ['a secret among the settings', { config: { ...CONFIG, SIDECAR_CLIENT_SECRET: 'x' } }],
    ['a URL with a password among the settings', { config: { ...CONFIG, SIDECAR_REDIS_URL: 'x' } }],
    ['a secret among the variables', { config: CONFIG, extraEnv: [{ name: 'SIDECAR_CLIENT_SECRET', value: 'x' }] }],
    ['a variable without a value', { config: CONFIG, extraEnv: [{ name: 'SIDECAR_CLIENT_ID' }] }],
    ['a variable of something else', { config: { ...CONFIG, NODE_OPTIONS: '--inspect' } }],
    ['a name that is no variable', { config: { ...CONFIG, baseUrl: 'x' } }],
    ['a list as a value', { config: { ...CONFIG, SIDECAR_SCOPE: ['a'] } }],
    ['an unknown mode', { config: CONFIG, mode: 'ambient' }],
    ['an unknown key', { config: CONFIG, replicaCount: 2 }],
    ['an unknown key below', { config: CONFIG, networkPolicy: { enable: true } }],
    ['a volume without a name', { config: CONFIG, extraVolumes: [{ emptyDir: {} }] }],
    ['a mount that is nowhere', { config: CONFIG, extraVolumeMounts: [{ name: 'x', mountPath: 'x' }] }],
    ['two sources of one volume', { config: CONFIG, client: { volume: { emptyDir: {}, csi: {} } } }],
    ['a volume with a name of its own', { config: CONFIG, client: { volume: { name: 'x' } } }],
    ['a file of another kind', { config: CONFIG, configFile: { fileName: 'sidecar.ini' } }],
    ['a digest that is none', { config: CONFIG, image: { repository: 'x', digest: 'latest' } }],
    ['an audience of an assertion without the client id', { config: CONFIG, client: { assertion: { audience: 'a' } } }],
    ['enabled, but not whether', { config: CONFIG, enabled: 'perhaps' }],
    ['a port that is none', { config: CONFIG, networkPolicy: { egressPorts: [70_000] } }],
    ['a Service of another type', { config: CONFIG, standalone: { service: { type: 'ExternalName', port: 80 } } }],
    ['a hook that is none', { config: CONFIG, lifecycle: { preStop: { shell: 'sleep 5' } } }],
    ['a hook of two kinds', { config: CONFIG, lifecycle: { preStop: { sleep: {}, exec: {} } } }],
    ['a container without an image', { config: CONFIG, extraContainers: [{ name: 'a' }] }],
    ['an init container with a name that is none', { config: CONFIG, initContainers: [{ name: 'A', image: 'a' }] }],
    ['a history of less than nothing', { config: CONFIG, revisionHistoryLimit: -1 }],
    ['a duration without a unit', { config: CONFIG, podMonitor: { scrapeTimeout: '10' } }],
    ['a label that is no text', { config: CONFIG, grafanaDashboard: { labels: { grafana_dashboard: 1 } } }],
  ])('%s: refused by helm and by the schema alone', (_, values) => {
    expect(validate({ ...defaults, ...(JSON.parse(JSON.stringify(values)) as Values) })).toBe(false);
    const { status, stderr } = helm('template', 'partner', CHART, '--values', writeValues(values));
    expect(status).not.toBe(0);
    expect(stderr).toContain("values don't meet the specifications of the schema");
  });

  it.each<[string, Values, RegExp]>([
    [
      'no settings',
      {},
      /SIDECAR_BASE_URL is required[\s\S]*SIDECAR_AUTH_URL or SIDECAR_AUTH_ISSUER or SIDECAR_AUTH_TOKEN_FILE is required/,
    ],
    [
      'two sources of the client',
      { config: CONFIG, client: { secretName: 'a', volume: { emptyDir: {} } } },
      /client: set/,
    ],
    [
      'two files',
      { configFile: { content: { log: {} }, volume: { emptyDir: {} } } },
      /configFile: set content or volume/,
    ],
    ['a secret in the file', { configFile: { content: { auth: { clientSecret: 'x' } } } }, /clientSecretFile/],
    ['a secret in a list', { configFile: { content: { credentials: [{ clientSecret: 'x' }] } } }, /clientSecretFile/],
    ['a secret in the text', { configFile: { content: '{"auth": {"clientSecret": "x"}}' } }, /clientSecretFile/],
    [
      'a drain that is longer than Kubernetes gives a pod',
      { config: { ...CONFIG, SIDECAR_DRAIN_MS: 60_000 } },
      /SIDECAR_DRAIN_MS and preStop take 60 s, and the pod is killed 30 s after its SIGTERM, with every POST in flight: set terminationGracePeriodSeconds of the pod, and the value of that name, to 65 or more/,
    ],
    [
      'a drain that is longer than the pod is said to have, with a hook before it',
      {
        config: CONFIG,
        mode: 'classic',
        terminationGracePeriodSeconds: 44,
        lifecycle: { preStop: { sleep: { seconds: 5 } } },
      },
      /take 45 s, and the pod is killed 44 s after/,
    ],
    [
      'a standalone pod with less than its drain',
      { config: CONFIG, mode: 'standalone', terminationGracePeriodSeconds: 39 },
      /take 40 s, and the pod is killed 39 s after/,
    ],
    [
      'a drain that a variable sets',
      { config: CONFIG, extraEnv: [{ name: 'SIDECAR_DRAIN_MS', value: '31000' }] },
      /take 31 s, and the pod is killed 30 s after/,
    ],
    ['a text that is no YAML', { configFile: { content: 'a: [' } }, /configFile\.content is no YAML/],
  ])('%s: refused when it is rendered, and not by lint', (_, values, message) => {
    const file = writeValues(values);
    const { status, stderr } = helm('template', 'partner', CHART, '--values', file, '--kube-version', '1.33.0');
    expect(status).not.toBe(0);
    expect(stderr).toMatch(message);
    expect(helm('lint', '--strict', CHART, '--values', file).status).toBe(0);
  });
});

interface SchemaNode {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
}

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

it.each(['static', 'none'])(
  'a client of the method %s has no file of an id or a secret, and no token cache',
  (method) => {
    const config = { SIDECAR_BASE_URL: 'https://api.partner.example', SIDECAR_AUTH_METHOD: method };
    const source = { static: 'SIDECAR_AUTH_TOKEN_FILE', none: 'SIDECAR_AUTH_URL' }[method]!;
    const value = { static: '/etc/bearer-sidecar/client/token', none: 'https://login.partner.example' }[method]!;
    const objects = renderInAppChart({ config: { ...config, [source]: value }, client: { secretName: 'partner' } });
    expect(findBrokenReferences(objects)).toEqual([]);
    const names = Object.keys(settingsOf(objects));
    for (const unused of ['CLIENT_ID_FILE', 'CLIENT_SECRET_FILE', 'AUTH_CACHE_FILE'])
      expect(names).not.toContain(`SIDECAR_${unused}`);
    expect(names).toContain(source);
  },
);

it('a client of the method none whose grant is an assertion has an id, its issuer, and a token cache', () => {
  const config = {
    ...CONFIG,
    SIDECAR_AUTH_METHOD: 'none',
    SIDECAR_AUTH_GRANT_TYPE: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
    SIDECAR_AUTH_PRIVATE_KEY_FILE: '/etc/bearer-sidecar/client/key',
  };
  const settings = settingsOf(renderInAppChart({ config, client: { secretName: 'partner' } }));
  expect(settings).toMatchObject({
    SIDECAR_CLIENT_ID_FILE: '/etc/bearer-sidecar/client/client-id',
    SIDECAR_AUTH_CACHE_FILE: '/var/lib/bearer-sidecar/token',
  });
  expect(Object.keys(settings)).not.toContain('SIDECAR_CLIENT_SECRET_FILE');
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

describe('what platform teams ask of the standalone Deployment', () => {
  interface Rendered {
    readonly spec: {
      readonly selector: unknown;
      readonly template: {
        readonly metadata: { readonly labels: Values; readonly annotations: Values };
        readonly spec: Values;
      };
    };
  }
  const deploymentOf = (values: Values) =>
    render({ mode: 'standalone', ...values }).find(({ kind }) => kind === 'Deployment') as Rendered & KubernetesObject;
  const podSpecOf = (values: Values) => deploymentOf(values).spec.template.spec;

  it.each<[string, unknown]>([
    ['imagePullSecrets', [{ name: 'registry' }]],
    ['serviceAccountName', 'partner-api'],
    ['automountServiceAccountToken', true],
    ['priorityClassName', 'critical'],
    ['runtimeClassName', 'gvisor'],
    ['schedulerName', 'own'],
    ['nodeSelector', { disk: 'ssd' }],
    ['tolerations', [{ key: 'a', operator: 'Exists' }]],
    ['affinity', { nodeAffinity: {} }],
    ['hostAliases', [{ ip: '192.0.2.1', hostnames: ['a.example'] }]],
    ['dnsPolicy', 'None'],
    ['dnsConfig', { nameservers: ['192.0.2.53'] }],
  ])('%s is handed on, and is absent or its default without a value', (field, value) => {
    expect(podSpecOf({ [field]: value })[field]).toEqual(value);
    expect(podSpecOf({})[field]).toBe(field === 'automountServiceAccountToken' ? false : undefined);
  });

  it('podSecurityContext', () => {
    expect(podSpecOf({ podSecurityContext: { fsGroup: 7 } }).securityContext).toEqual({ fsGroup: 7 });
    expect(podSpecOf({}).securityContext).toBeUndefined();
  });

  it('the older places below standalone still count, and the newer ones win', () => {
    const standalone = { nodeSelector: { disk: 'hdd' }, serviceAccountName: 'older', podAnnotations: { a: 'older' } };
    expect(podSpecOf({ standalone })).toMatchObject({ nodeSelector: { disk: 'hdd' }, serviceAccountName: 'older' });
    expect(deploymentOf({ standalone }).spec.template.metadata.annotations).toMatchObject({ a: 'older' });
    const newer = { nodeSelector: { arch: 'arm' }, serviceAccountName: 'newer', podAnnotations: { a: 'newer' } };
    expect(podSpecOf({ standalone, ...newer })).toMatchObject({
      nodeSelector: { arch: 'arm' },
      serviceAccountName: 'newer',
    });
    expect(deploymentOf({ standalone, ...newer }).spec.template.metadata.annotations).toMatchObject({ a: 'newer' });
  });

  it('labels of the user change no selector, and take no label that the chart needs', () => {
    const own = { 'bearer-sidecar': 'off', team: 'sales' };
    const { spec } = deploymentOf({ podLabels: own, commonLabels: { ...own, 'cost-centre': '4711' } });
    expect(spec.selector).toEqual(deploymentOf({}).spec.selector);
    expect(spec.template.metadata.labels).toMatchObject({
      'bearer-sidecar': 'partner',
      team: 'sales',
      'cost-centre': '4711',
    });
    const objects = render({
      mode: 'standalone',
      commonLabels: own,
      podMonitor: { enabled: true },
      podDisruptionBudget: { enabled: true },
    });
    for (const { metadata } of objects) expect(metadata.labels).toMatchObject({ team: 'sales' });
  });

  it('spread constraints count the pods of the release, unless they select others', () => {
    const constraint = { maxSkew: 1, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'DoNotSchedule' };
    const labelSelector = { matchExpressions: [{ key: 'team', operator: 'Exists' }] };
    const topologySpreadConstraints = [constraint, { ...constraint, labelSelector }];
    expect(podSpecOf({ topologySpreadConstraints }).topologySpreadConstraints).toEqual([
      { ...constraint, labelSelector: { matchLabels: { 'bearer-sidecar': 'partner' } } },
      { ...constraint, labelSelector },
    ]);
  });

  it.each([
    [{ enabled: true }, { maxUnavailable: 1 }],
    [{ enabled: true, maxUnavailable: '50%' }, { maxUnavailable: '50%' }],
    [{ enabled: true, minAvailable: 1 }, { minAvailable: 1 }],
    [{ enabled: true, minAvailable: '30%' }, { minAvailable: '30%' }],
  ])('a disruption budget of %j', (podDisruptionBudget, expected) => {
    const objects = render({ mode: 'standalone', podDisruptionBudget });
    expect(findSchemaFaults(objects)).toEqual([]);
    expect(findBrokenReferences(objects)).toEqual([]);
    const budget = objects.find(({ kind }) => kind === 'PodDisruptionBudget')?.spec as Values;
    const { minAvailable, maxUnavailable } = budget;
    expect(JSON.parse(JSON.stringify({ minAvailable, maxUnavailable }))).toEqual(expected);
  });

  it('there is none without it, none beside an app, and never an autoscaler', () => {
    const kinds = [render({ mode: 'standalone' }), renderInAppChart({ podDisruptionBudget: { enabled: true } })]
      .flat()
      .map(({ kind }) => kind);
    expect(kinds).not.toContain('PodDisruptionBudget');
    expect(kinds).not.toContain('HorizontalPodAutoscaler');
  });

  it('the pod has more time to end than the sidecar takes', () => {
    const graceOf = (config: Values) => podSpecOf({ config: { ...CONFIG, ...config } }).terminationGracePeriodSeconds;
    expect(graceOf({})).toBe(45);
    expect(graceOf({ SIDECAR_DRAIN_MS: 120_500 })).toBe(126);
    expect(graceOf({ SIDECAR_DRAIN_MS: '' })).toBe(30);
    expect(podSpecOf({ config: CONFIG, terminationGracePeriodSeconds: 90 }).terminationGracePeriodSeconds).toBe(90);
  });

  it('names, and an image by digest', () => {
    const namesOf = (values: Values, release?: string) =>
      render({ mode: 'standalone', ...values }, release).map(({ metadata }) => metadata.name);
    expect(new Set(namesOf({}))).toEqual(new Set(['partner-bearer-sidecar']));
    expect(new Set(namesOf({ nameOverride: 'api' }))).toEqual(new Set(['partner-api']));
    expect(new Set(namesOf({ fullnameOverride: 'sales' }))).toEqual(new Set(['sales']));
    const digest = `sha256:${'0a'.repeat(32)}`;
    const image = { repository: 'registry.example/sidecar', tag: '1', digest };
    expect(sidecarOf(podsOf(render({ mode: 'standalone', image }))[0]!)?.image).toBe(
      `registry.example/sidecar@${digest}`,
    );
  });

  it('a service account of its own, with the name that is given or that of the release', () => {
    const accountOf = (values: Values) => {
      const objects = render({ mode: 'standalone', ...values });
      const account = objects.find(({ kind }) => kind === 'ServiceAccount');
      expect(podsOf(objects)[0]?.spec.serviceAccountName).toBe(account?.metadata.name);
      return account?.metadata;
    };
    expect(accountOf({ serviceAccount: { create: true, annotations: { role: 'a' } } })).toMatchObject({
      name: 'partner-bearer-sidecar',
      annotations: { role: 'a' },
    });
    expect(accountOf({ serviceAccountName: 'own', serviceAccount: { create: true } })).toMatchObject({ name: 'own' });
  });
});

it('the policy lets out to the addresses that are named', () => {
  const egressTo = [{ ipBlock: { cidr: '192.0.2.0/24' } }];
  const objects = render({ networkPolicy: { enabled: true, egressTo } });
  expect(findSchemaFaults(objects)).toEqual([]);
  const policy = objects.find(({ metadata }) => metadata.name.endsWith('-egress'))?.spec as {
    readonly egress: unknown[];
  };
  expect(policy.egress[1]).toEqual({ ports: [{ protocol: 'TCP', port: 443 }], to: egressTo });
});

it('a variable that takes a JSON object may be written as one', () => {
  const config = { ...CONFIG, SIDECAR_AUTH_EXTRA_PARAMETERS: { tenant: 'a' } };
  expect(settingsOf(render({ mode: 'standalone', config }))).toMatchObject({
    SIDECAR_AUTH_EXTRA_PARAMETERS: '{"tenant":"a"}',
  });
});
