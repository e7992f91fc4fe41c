/**
 * What a cluster's admission checks of a pod, each rule with its source: the Pod Security Standard "restricted" of Kubernetes
 * (https://kubernetes.io/docs/concepts/security/pod-security-standards/, with all of "baseline"), and the SecurityContextConstraints
 * restricted-v2 of OpenShift (openshift/cluster-kube-apiserver-operator, bindata/bootkube/scc-manifests).
 */
import type { Container, Pod, PodSpec } from './pods.ts';

interface SecurityContext {
  readonly privileged?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly runAsNonRoot?: boolean;
  readonly runAsUser?: number;
  readonly runAsGroup?: number;
  readonly fsGroup?: number;
  readonly supplementalGroups?: readonly number[];
  readonly procMount?: string;
  readonly capabilities?: { readonly add?: readonly string[]; readonly drop?: readonly string[] };
  readonly seccompProfile?: { readonly type?: string };
  readonly seLinuxOptions?: object;
  readonly appArmorProfile?: { readonly type?: string };
  readonly sysctls?: readonly unknown[];
  readonly windowsOptions?: { readonly hostProcess?: boolean };
}

/** A pod as its admission sees it; only these containers are checked, since the app's own are not ours. */
export interface Subject {
  readonly spec: PodSpec;
  readonly containers: readonly Container[];
}

interface Rule {
  readonly name: string;
  readonly source: 'baseline' | 'restricted' | 'restricted-v2';
  readonly isBroken: (subject: Subject) => boolean;
}

const VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
];

const podContext = ({ spec }: Subject): SecurityContext => spec.securityContext ?? {};
const ownContexts = ({ containers }: Subject): SecurityContext[] =>
  containers.map(({ securityContext }) => securityContext ?? {});
const allContexts = (subject: Subject): SecurityContext[] => [podContext(subject), ...ownContexts(subject)];
const volumeSources = ({ spec }: Subject): string[] =>
  (spec.volumes ?? []).flatMap((volume) => Object.keys(volume).filter((key) => key !== 'name'));
const portsOf = ({ containers }: Subject): { readonly hostPort?: number }[] =>
  containers.flatMap(({ ports = [] }) => ports);
/** What a container gets: its own value, or else that of the pod. */
const effective = <K extends keyof SecurityContext>(subject: Subject, key: K): (SecurityContext[K] | undefined)[] =>
  ownContexts(subject).map((own) => own[key] ?? podContext(subject)[key]);

const RULES: readonly Rule[] = [
  // Baseline.
  {
    name: 'host namespaces',
    source: 'baseline',
    isBroken: ({ spec }) => ['hostNetwork', 'hostPID', 'hostIPC'].some((key) => spec[key] === true),
  },
  {
    name: 'privileged containers',
    source: 'baseline',
    isBroken: (subject) => ownContexts(subject).some(({ privileged }) => privileged === true),
  },
  {
    name: 'host processes',
    source: 'baseline',
    isBroken: (subject) => allContexts(subject).some(({ windowsOptions }) => windowsOptions?.hostProcess === true),
  },
  {
    name: 'host ports',
    source: 'baseline',
    isBroken: (subject) => portsOf(subject).some(({ hostPort = 0 }) => hostPort !== 0),
  },
  {
    name: 'AppArmor',
    source: 'baseline',
    isBroken: (subject) => allContexts(subject).some(({ appArmorProfile }) => appArmorProfile?.type === 'Unconfined'),
  },
  {
    name: '/proc mount type',
    source: 'baseline',
    isBroken: (subject) => ownContexts(subject).some(({ procMount = 'Default' }) => procMount !== 'Default'),
  },
  { name: 'sysctls', source: 'baseline', isBroken: (subject) => (podContext(subject).sysctls ?? []).length > 0 },
  // Restricted.
  {
    name: 'volume types',
    source: 'restricted',
    isBroken: (subject) => volumeSources(subject).some((source) => !VOLUMES.includes(source)),
  },
  {
    name: 'privilege escalation',
    source: 'restricted',
    isBroken: (subject) => ownContexts(subject).some((own) => own.allowPrivilegeEscalation !== false),
  },
  {
    name: 'running as non-root',
    source: 'restricted',
    isBroken: (subject) => effective(subject, 'runAsNonRoot').some((value) => value !== true),
  },
  {
    name: 'running as non-root user',
    source: 'restricted',
    isBroken: (subject) => allContexts(subject).some(({ runAsUser }) => runAsUser === 0),
  },
  {
    name: 'seccomp',
    source: 'restricted',
    isBroken: (subject) =>
      effective(subject, 'seccompProfile').some(
        (value) => !['RuntimeDefault', 'Localhost'].includes(value?.type ?? ''),
      ),
  },
  {
    name: 'capabilities',
    source: 'restricted',
    isBroken: (subject) =>
      ownContexts(subject).some(
        ({ capabilities: { add = [], drop = [] } = {} }) =>
          !drop.includes('ALL') || add.some((capability) => capability !== 'NET_BIND_SERVICE'),
      ),
  },
  // restricted-v2, where it asks for more.
  {
    // runAsUser: MustRunAsRange, the range of the namespace.
    name: 'a user outside of the range',
    source: 'restricted-v2',
    isBroken: (subject) => allContexts(subject).some(({ runAsUser }) => runAsUser !== undefined),
  },
  {
    // fsGroup: MustRunAs, the range of the namespace.
    name: 'an fsGroup outside of the range',
    source: 'restricted-v2',
    isBroken: (subject) => podContext(subject).fsGroup !== undefined,
  },
  {
    // seLinuxContext: MustRunAs, the level of the namespace.
    name: 'SELinux options',
    source: 'restricted-v2',
    isBroken: (subject) => allContexts(subject).some(({ seLinuxOptions }) => seLinuxOptions !== undefined),
  },
  {
    // seccompProfiles: runtime/default alone.
    name: 'a seccomp profile of its own',
    source: 'restricted-v2',
    isBroken: (subject) =>
      allContexts(subject).some(
        ({ seccompProfile }) => (seccompProfile?.type ?? 'RuntimeDefault') !== 'RuntimeDefault',
      ),
  },
];

/** What of the rules a pod breaks; of its containers, these. */
export function findSecurityFaults(pod: Pod, containers: readonly Container[]): string[] {
  const subject = { spec: pod.spec, containers };
  return RULES.filter(({ isBroken }) => isBroken(subject)).map(({ name, source }) => `${source}: ${name}`);
}
