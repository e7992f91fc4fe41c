/**
 * Kubernetes objects as they were rendered, checked in two ways: by the JSON schemas of the Kubernetes API (types, required
 * fields, patterns), and by the types made from the same API, which know a field that does not exist.
 */
import { join } from 'node:path';
import { PodMonitor, PrometheusRule } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { CronJob, Job } from 'kubernetes-models/batch/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Secret, Service, ServiceAccount } from 'kubernetes-models/v1';
import ts from 'typescript';
import { parseAllDocuments } from 'yaml';
import { findOperatorKindFaults, isOperatorKind } from './operator-kinds.ts';

export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: Readonly<Record<string, string>> };
  readonly spec?: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

type Kind = new (data: never) => { validate(): void };

/** Kind -> its class, and the type to hold against its fields. */
const KINDS: ReadonlyMap<string, readonly [Kind, type: string, module: string]> = new Map([
  ['apps/v1 Deployment', [Deployment, 'IDeployment', 'kubernetes-models/apps/v1']],
  ['batch/v1 Job', [Job, 'IJob', 'kubernetes-models/batch/v1']],
  ['batch/v1 CronJob', [CronJob, 'ICronJob', 'kubernetes-models/batch/v1']],
  ['networking.k8s.io/v1 NetworkPolicy', [NetworkPolicy, 'INetworkPolicy', 'kubernetes-models/networking.k8s.io/v1']],
  ['policy/v1 PodDisruptionBudget', [PodDisruptionBudget, 'IPodDisruptionBudget', 'kubernetes-models/policy/v1']],
  ['v1 ConfigMap', [ConfigMap, 'IConfigMap', 'kubernetes-models/v1']],
  ['v1 Secret', [Secret, 'ISecret', 'kubernetes-models/v1']],
  ['v1 Service', [Service, 'IService', 'kubernetes-models/v1']],
  ['v1 ServiceAccount', [ServiceAccount, 'IServiceAccount', 'kubernetes-models/v1']],
  [
    'monitoring.coreos.com/v1 PodMonitor',
    [PodMonitor, 'IPodMonitor', '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'],
  ],
  [
    'monitoring.coreos.com/v1 PrometheusRule',
    [PrometheusRule, 'IPrometheusRule', '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1'],
  ],
]);

/** @throws Error when a document is not valid YAML, or gives a key twice */
export function parseManifests(yaml: string): KubernetesObject[] {
  return parseAllDocuments(yaml, { uniqueKeys: true }).flatMap((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    const value = document.toJS() as KubernetesObject | null;
    return value === null ? [] : [value];
  });
}

/** What the JSON schemas say, one line for each object that is wrong. */
export function findSchemaFaults(objects: readonly KubernetesObject[]): string[] {
  return objects.flatMap((object) => {
    if (isOperatorKind(object)) return findOperatorKindFaults(object).map((fault) => `${nameOf(object)}: ${fault}`);
    const [Model] = kindOf(object);
    try {
      new Model(object as never).validate();
      return [];
    } catch (error) {
      return [`${nameOf(object)}: ${error instanceof Error ? error.message : String(error)}`];
    }
  });
}

/** The declarations of Kubernetes' types, which are parsed once. */
const declarations = new Map<string, ts.SourceFile | undefined>();

/** What the compiler says of each object as a literal of its type: names fields that the API does not know. */
export function findUnknownFields(all: readonly KubernetesObject[]): string[] {
  // The schemas of the others name every field.
  const objects = all.filter((object) => !isOperatorKind(object));
  const lines = objects.map((object, index) => {
    const [, type, module] = kindOf(object);
    return `export const object${String(index)}: import('${module}').${type} = ${JSON.stringify(object)};`;
  });
  const file = join(import.meta.dirname, 'rendered-objects.ts');
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: [],
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
  };
  const host = ts.createCompilerHost(options);
  const { fileExists, getSourceFile } = host;
  host.fileExists = (name) => name === file || fileExists(name);
  host.getSourceFile = (name, languageVersion, ...rest) => {
    if (name === file) return ts.createSourceFile(name, lines.join('\n'), languageVersion);
    const source = declarations.get(name) ?? getSourceFile(name, languageVersion, ...rest);
    declarations.set(name, source);
    return source;
  };
  const program = ts.createProgram([file], options, host);
  return ts.getPreEmitDiagnostics(program).map(({ messageText, start, file: source }) => {
    const line = source === undefined ? 0 : source.getLineAndCharacterOfPosition(start ?? 0).line;
    const object = objects[line];
    return `${object === undefined ? 'compiler' : nameOf(object)}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`;
  });
}

/** `Deployment legacy-app`. */
export function nameOf({ kind, metadata }: KubernetesObject): string {
  return `${kind} ${metadata.name}`;
}

function kindOf({ apiVersion, kind }: KubernetesObject): readonly [Kind, type: string, module: string] {
  const known = KINDS.get(`${apiVersion} ${kind}`);
  if (known === undefined) throw new Error(`no schema is known for ${apiVersion} ${kind}`);
  return known;
}
