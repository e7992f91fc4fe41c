/** deploy/kubernetes as `kubectl kustomize` renders it. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { GO_ENV } from './go-program.ts';
import { parseManifests } from './manifests.ts';
import type { KubernetesObject } from './manifests.ts';

export const KUBERNETES_FOLDER = join(import.meta.dirname, '..', '..', 'deploy', 'kubernetes');

/** @throws Error when kubectl is missing, or with what it says of the folder */
export function kustomize(folder: string): KubernetesObject[] {
  return parseManifests(runKustomize(folder));
}

const examples = new Map<string, string>();

/** One of the examples, by the name of its folder; it is rendered once. */
export function kustomizeExample(name: string): KubernetesObject[] {
  const manifests = examples.get(name) ?? runKustomize(join(KUBERNETES_FOLDER, 'examples', name));
  examples.set(name, manifests);
  return parseManifests(manifests);
}

function runKustomize(folder: string): string {
  const env = { ...process.env, ...GO_ENV };
  const { status, stdout, stderr, error } = spawnSync('kubectl', ['kustomize', folder], { env, encoding: 'utf8' });
  if (error !== undefined) throw new Error('kubectl is needed by this test, 1.27 or newer', { cause: error });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}
