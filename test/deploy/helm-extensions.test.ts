/** What the chart takes beyond the sidecar's own needs: hooks, further containers, the type of the Service, the dashboard, the monitor. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CHART, helm } from '../support/helm.ts';
import { findSchemaFaults, findUnknownFields } from '../support/manifests.ts';
import type { KubernetesObject } from '../support/manifests.ts';
import { findBrokenReferences, podsOf, sidecarOf } from '../support/pods.ts';
import { CLUSTER, CONFIG, render, renderInAppChart, writeValues } from './chart.ts';
import type { Values } from './chart.ts';

/** Renders a Deployment and a Service that Kubernetes accepts. */
function renderStandalone(values: Values): KubernetesObject[] {
  const objects = render({ mode: 'standalone', ...values });
  expect(findSchemaFaults(objects)).toEqual([]);
  expect(findBrokenReferences(objects)).toEqual([]);
  return objects;
}

function find(objects: readonly KubernetesObject[], kind: string, suffix = ''): KubernetesObject | undefined {
  return objects.find((object) => object.kind === kind && object.metadata.name === `partner-bearer-sidecar${suffix}`);
}

describe('lifecycle', () => {
  const lifecycle = { preStop: { sleep: { seconds: 7 } }, postStart: { httpGet: { path: '/livez', port: 19_464 } } };

  it.each([
    ['standalone', () => renderStandalone({ lifecycle })],
    ['native', () => renderInAppChart({ lifecycle, terminationGracePeriodSeconds: 60 })],
    ['classic', () => renderInAppChart({ mode: 'classic', lifecycle, terminationGracePeriodSeconds: 60 })],
  ])('%s: is handed on to the container', (_, make) => {
    expect(sidecarOf(podsOf(make())[0]!)).toMatchObject({ lifecycle });
  });

  it('is absent without a value', () => {
    expect(sidecarOf(podsOf(render({ mode: 'standalone' }))[0]!)).not.toHaveProperty('lifecycle');
  });

  it('the seconds of a preStop sleep are added to the time that the pod has to end', () => {
    const graceOf = (values: Values) => podsOf(renderStandalone(values))[0]?.terminationGracePeriodSeconds;
    expect(graceOf({ lifecycle })).toBe(52);
    expect(graceOf({ lifecycle: { preStop: { exec: { command: ['/usr/local/bin/node', '--version'] } } } })).toBe(45);
    expect(graceOf({ lifecycle: null })).toBe(45);
  });
});

describe('the Deployment', () => {
  it('has further containers beside the sidecar and before it', () => {
    const extraContainers = [{ name: 'log-shipper', image: 'log-shipper:1', env: [{ name: 'A', value: 'b' }] }];
    const initContainers = [{ name: 'fetch', image: 'fetch:1', command: ['fetch'] }];
    const [pod] = podsOf(renderStandalone({ extraContainers, initContainers }));
    expect(pod?.containers.map(({ name }) => name)).toEqual(['bearer-sidecar', 'log-shipper']);
    expect(pod?.containers[1]).toEqual(extraContainers[0]);
    expect(pod?.initContainers).toEqual(initContainers);
    const [without] = podsOf(render({ mode: 'standalone' }));
    expect(without?.containers.map(({ name }) => name)).toEqual(['bearer-sidecar']);
    expect(without?.spec).not.toHaveProperty('initContainers');
  });

  it('has annotations of its own, which are not those of the pod', () => {
    const deployment = find(renderStandalone({ deploymentAnnotations: { a: 'b' } }), 'Deployment');
    expect(deployment).toMatchObject({ metadata: { annotations: { a: 'b' } } });
    expect(deployment).not.toHaveProperty('spec.template.metadata.annotations.a');
    expect(find(render({ mode: 'standalone' }), 'Deployment')?.metadata).not.toHaveProperty('annotations');
  });

  it.each([
    [{}, 10],
    [{ revisionHistoryLimit: 0 }, 0],
    [{ revisionHistoryLimit: 3 }, 3],
  ])('with %j keeps %i old ReplicaSets', (values, expected) => {
    expect(find(renderStandalone(values), 'Deployment')).toMatchObject({ spec: { revisionHistoryLimit: expected } });
  });
});

describe('the Service', () => {
  const serviceOf = (service: Values) => find(renderStandalone({ standalone: { service } }), 'Service')?.spec as Values;
  const http = { name: 'http', port: 80, targetPort: 'proxy' };

  it('is reachable inside of the cluster only, unless a type says otherwise', () => {
    expect(serviceOf({})).toEqual({ type: 'ClusterIP', selector: { 'bearer-sidecar': 'partner' }, ports: [http] });
  });

  it('has the type, the port of the nodes and the addresses of its clients that are named', () => {
    expect(serviceOf({ type: 'NodePort' })).toMatchObject({ type: 'NodePort', ports: [http] });
    expect(serviceOf({ type: 'NodePort', nodePort: 30_080 }).ports).toEqual([{ ...http, nodePort: 30_080 }]);
    const loadBalancerSourceRanges = ['192.0.2.0/24', '2001:db8::/32'];
    expect(serviceOf({ type: 'LoadBalancer', loadBalancerSourceRanges })).toMatchObject({ loadBalancerSourceRanges });
  });

  const refusalOf = (values: Values): string => {
    const file = writeValues({ mode: 'standalone', config: CONFIG, ...values });
    const { status, stderr } = helm('template', 'partner', CHART, '--values', file, ...CLUSTER);
    return status === 0 ? '' : stderr;
  };

  it.each<[string, Values]>([
    ['without the required field', { standalone: { requiredHeader: null } }],
    ['with an empty one', { config: { ...CONFIG, SIDECAR_LISTEN_REQUIRED_HEADER_NAME: '' } }],
    [
      'with every caller allowed explicitly',
      {
        standalone: { requiredHeader: null },
        config: { ...CONFIG, SIDECAR_LISTEN_ALLOW_UNAUTHENTICATED_NETWORK: true },
      },
    ],
  ])('%s: is not opened to clients outside of the cluster', (_, values) => {
    expect(refusalOf(values)).toBe('');
    for (const type of ['NodePort', 'LoadBalancer']) {
      const standalone = { ...(values.standalone as Values | undefined), service: { type } };
      expect(refusalOf({ ...values, standalone })).toMatch(
        `standalone.service.type ${type}: any client outside of the cluster that reaches the Service would call the partner in your name; set standalone.requiredHeader\n`,
      );
    }
  });

  it('of another type than its fields is refused', () => {
    expect(refusalOf({ standalone: { service: { nodePort: 30_080 } } })).toMatch(
      'nodePort needs the type NodePort or LoadBalancer',
    );
    const service = { type: 'NodePort', loadBalancerSourceRanges: ['192.0.2.0/24'] };
    expect(refusalOf({ standalone: { service } })).toMatch('loadBalancerSourceRanges needs the type LoadBalancer');
  });
});

describe('the PodMonitor', () => {
  const monitorOf = (values: Values) =>
    find(render({ mode: 'standalone', podMonitor: { enabled: true, ...values } }), 'PodMonitor');
  const endpointOf = (values: Values) =>
    (monitorOf(values)?.spec as { podMetricsEndpoints: readonly Values[] }).podMetricsEndpoints[0];

  it('has a time for one scrape only if it is named', () => {
    expect(endpointOf({})).toMatchObject({ interval: '15s' });
    expect(endpointOf({})).not.toHaveProperty('scrapeTimeout');
    expect(endpointOf({ interval: '1m', scrapeTimeout: '60s' })).toMatchObject({ scrapeTimeout: '60s' });
  });

  it('a scrape that may take longer than the interval is refused', () => {
    expect(() => monitorOf({ interval: '1m', scrapeTimeout: '60001ms' })).toThrow(
      'podMonitor.scrapeTimeout 60001ms is longer than the interval 1m, which Prometheus refuses',
    );
  });

  it('has a label once that commonLabels have too', () => {
    const podMonitor = { enabled: true, labels: { release: 'prometheus' } };
    const objects = render({ podMonitor, commonLabels: { release: 'other', team: 'sales' } });
    for (const kind of ['PodMonitor', 'PrometheusRule'])
      expect(find(objects, kind)?.metadata.labels).toMatchObject({ release: 'prometheus', team: 'sales' });
  });
});

describe("Grafana's dashboard", () => {
  const dashboardOf = (grafanaDashboard: Values) => find(render({ grafanaDashboard }), 'ConfigMap', '-dashboard');

  it('is that of deploy/grafana, braces included, under the label that kube-prometheus-stack looks for', () => {
    const map = dashboardOf({ enabled: true });
    expect(map?.metadata.labels).toMatchObject({ grafana_dashboard: '1', 'app.kubernetes.io/instance': 'partner' });
    expect(map?.metadata).not.toHaveProperty('annotations');
    const file = join(CHART, '..', '..', 'grafana', 'dashboard.json');
    expect(map?.data).toEqual({ 'bearer-sidecar.json': readFileSync(file, 'utf8') });
  });

  it('has other labels and annotations when they are named, and is absent unless it is enabled', () => {
    const map = dashboardOf({
      enabled: true,
      labels: { grafana_dashboard: null, dashboards: 'sales' },
      annotations: { grafana_folder: 'Sales' },
    });
    expect(map?.metadata.labels).toMatchObject({ dashboards: 'sales' });
    expect(map?.metadata.labels).not.toHaveProperty('grafana_dashboard');
    expect(map?.metadata).toMatchObject({ annotations: { grafana_folder: 'Sales' } });
    expect(dashboardOf({})).toBeUndefined();
  });
});

it('no object has a field that Kubernetes does not know', () => {
  const objects = renderStandalone({
    lifecycle: { preStop: { sleep: { seconds: 1 } }, postStart: { exec: { command: ['a'] } } },
    extraContainers: [{ name: 'a', image: 'a' }],
    initContainers: [{ name: 'b', image: 'b' }],
    deploymentAnnotations: { a: 'b' },
    revisionHistoryLimit: 1,
    podMonitor: { enabled: true, scrapeTimeout: '5s' },
    grafanaDashboard: { enabled: true },
    standalone: { service: { type: 'LoadBalancer', nodePort: 30_080, loadBalancerSourceRanges: ['192.0.2.0/24'] } },
  });
  expect(findUnknownFields(objects)).toEqual([]);
});
