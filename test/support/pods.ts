/**
 * The pods in rendered Kubernetes objects, and what an API server or a kubelet would find wrong only when they run: names that
 * lead nowhere, and times that do not fit.
 */
import { nameOf } from './manifests.ts';
import type { KubernetesObject } from './manifests.ts';

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number };
  readonly tcpSocket?: { readonly port: string | number };
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly restartPolicy?: string;
  readonly command?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[];
  readonly envFrom?: readonly { readonly configMapRef?: { readonly name: string; readonly optional?: boolean } }[];
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly hostPort?: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly resources?: Readonly<Record<'requests' | 'limits', Readonly<Record<string, string>> | undefined>>;
  readonly securityContext?: Readonly<Record<string, unknown>>;
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

export interface ServiceAccountTokenSource {
  readonly path: string;
  readonly audience?: string;
  readonly expirationSeconds?: number;
}

export interface Pod {
  /** Of the object that makes it. */
  readonly owner: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The whole of its specification, with what is not named here. */
  readonly spec: PodSpec;
  readonly terminationGracePeriodSeconds: number;
  readonly initContainers: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes: readonly {
    readonly name: string;
    readonly secret?: { readonly secretName: string; readonly defaultMode?: number };
    readonly configMap?: { readonly name: string };
    readonly projected?: {
      readonly defaultMode?: number;
      readonly sources: readonly { readonly serviceAccountToken?: ServiceAccountTokenSource }[];
    };
  }[];
}

export type PodSpec = Readonly<Record<string, unknown>> & Partial<Omit<Pod, 'owner' | 'labels' | 'spec'>>;

interface PodTemplate {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
  readonly spec: PodSpec;
}

interface Workload {
  readonly selector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly template: PodTemplate;
}

/** Of every Deployment, Job and CronJob. */
export function podsOf(objects: readonly KubernetesObject[]): Pod[] {
  return workloadsOf(objects).map(({ owner, spec }) => toPod(owner, spec.template));
}

/** The sidecar's container in a pod, wherever it is. */
export function sidecarOf({ initContainers, containers }: Pod): Container | undefined {
  return [...initContainers, ...containers].find(({ name }) => name === 'bearer-sidecar');
}

/** The variables of a container, ConfigMaps resolved as the kubelet does: later ones win, `env` last. */
export function environmentOf(container: Container, objects: readonly KubernetesObject[]): Record<string, string> {
  const maps = (container.envFrom ?? []).map(({ configMapRef }) => {
    const map = objects.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === configMapRef?.name);
    if (map === undefined && configMapRef?.optional !== true)
      throw new Error(`no ConfigMap ${String(configMapRef?.name)}`);
    return map?.data ?? {};
  });
  const own = (container.env ?? []).map(({ name, value }) => [name, value ?? ''] as const);
  return { ...Object.assign({}, ...maps), ...Object.fromEntries(own) } as Record<string, string>;
}

/** One line for each name that leads nowhere. */
export function findBrokenReferences(objects: readonly KubernetesObject[]): string[] {
  const pods = podsOf(objects);
  return [...workloadsOf(objects).flatMap(selectorFaults), ...pods.flatMap(podFaults), ...objects.flatMap(portFaults)];

  function podFaults(pod: Pod): string[] {
    const all = [...pod.initContainers, ...pod.containers];
    const ports = all.flatMap((container) => container.ports ?? []);
    const names = ports.flatMap(({ name }) => name ?? []);
    const volumes = pod.volumes.map(({ name }) => name);
    return [
      ...(pod.containers.length > 0 ? [] : ['no container']),
      ...duplicates(all.map(({ name }) => name)).map((name) => `two containers ${name}`),
      ...duplicates(volumes).map((name) => `two volumes ${name}`),
      ...duplicates(names).map((name) => `two ports ${name}`),
      ...names.filter((name) => !/^[a-z\d-]{1,15}$/.test(name)).map((name) => `${name} is no name for a port`),
      ...pod.containers
        .filter(({ restartPolicy }) => restartPolicy !== undefined)
        .map(({ name }) => `${name} restarts`),
      ...all.flatMap((container) => containerFaults(container, volumes)),
    ].map((fault) => `${pod.owner}: ${fault}`);
  }

  function containerFaults(container: Container, volumes: readonly string[]): string[] {
    const { startupProbe, livenessProbe, readinessProbe, ports = [], volumeMounts = [], envFrom = [] } = container;
    const probed = [startupProbe, livenessProbe, readinessProbe].flatMap(
      (probe) => probe?.httpGet?.port ?? probe?.tcpSocket?.port ?? [],
    );
    const maps = objects.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
    return [
      ...probed.filter((port) => !ports.some((known) => known.name === port)).map((port) => `no port ${String(port)}`),
      ...volumeMounts.filter(({ name }) => !volumes.includes(name)).map(({ name }) => `no volume ${name}`),
      ...duplicates(volumeMounts.map(({ mountPath }) => mountPath)).map((path) => `two mounts at ${path}`),
      ...envFrom.flatMap(({ configMapRef }) =>
        configMapRef !== undefined && configMapRef.optional !== true && !maps.includes(configMapRef.name)
          ? [`no ConfigMap ${configMapRef.name}`]
          : [],
      ),
    ].map((fault) => `${container.name}: ${fault}`);
  }

  /** Services and PodMonitors name ports of the pods that they select. */
  function portFaults(object: KubernetesObject): string[] {
    const wanted = wantedPorts(object);
    if (wanted === undefined) return [];
    const selected = pods.filter(({ labels }) => matches(labels, wanted.labels));
    if (selected.length === 0) return [`${nameOf(object)}: selects nothing`];
    return selected.flatMap((pod) => {
      const names = [...pod.initContainers, ...pod.containers].flatMap(({ ports = [] }) =>
        ports.map(({ name }) => name),
      );
      return wanted.ports
        .filter((port) => !names.includes(port))
        .map((port) => `${nameOf(object)}: ${pod.owner} has no port ${port}`);
    });
  }
}

interface Selecting {
  readonly selector?: Readonly<Record<string, unknown>>;
  readonly podSelector?: { readonly matchLabels?: Readonly<Record<string, string>> };
  readonly ports?: readonly { readonly targetPort: string }[];
  readonly podMetricsEndpoints?: readonly { readonly port: string }[];
}

function wantedPorts({ kind, spec }: KubernetesObject) {
  const { selector, podSelector, ports = [], podMetricsEndpoints = [] } = (spec ?? {}) as Selecting;
  const labels = (value: unknown) => value as Readonly<Record<string, string>>;
  if (kind === 'Service') return { labels: labels(selector), ports: ports.map(({ targetPort }) => targetPort) };
  if (kind === 'PodMonitor')
    return { labels: labels(selector?.matchLabels), ports: podMetricsEndpoints.map(({ port }) => port) };
  return kind === 'NetworkPolicy' || kind === 'PodDisruptionBudget'
    ? { labels: podSelector?.matchLabels ?? labels(selector?.matchLabels), ports: [] }
    : undefined;
}

function selectorFaults({ owner, spec }: { readonly owner: string; readonly spec: Workload }): string[] {
  const wanted = spec.selector?.matchLabels ?? {};
  return matches(spec.template.metadata?.labels ?? {}, wanted) ? [] : [`${owner}: selects none of its own pods`];
}

function workloadsOf(objects: readonly KubernetesObject[]): { owner: string; spec: Workload }[] {
  return objects
    .filter(({ kind }) => kind === 'Deployment' || kind === 'Job' || kind === 'CronJob')
    .map((object) => {
      const spec = object.spec as Workload | { readonly jobTemplate: { readonly spec: Workload } };
      return { owner: nameOf(object), spec: 'jobTemplate' in spec ? spec.jobTemplate.spec : spec };
    });
}

function toPod(owner: string, { metadata, spec }: PodTemplate): Pod {
  return {
    owner,
    labels: metadata?.labels ?? {},
    spec,
    // What Kubernetes gives a pod that says nothing.
    terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? 30,
    initContainers: spec.initContainers ?? [],
    containers: spec.containers ?? [],
    volumes: spec.volumes ?? [],
  };
}

function matches(labels: Readonly<Record<string, string>>, wanted: Readonly<Record<string, string>>): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}

function duplicates(names: readonly string[]): string[] {
  return names.filter((name, index) => names.indexOf(name) !== index);
}
