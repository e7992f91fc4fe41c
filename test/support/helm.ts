/** The chart as helm itself renders it; helm comes with the packages (tools/runtime) and is given nothing but the chart. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { GO_ENV } from './go-program.ts';
import { parseManifests } from './manifests.ts';
import type { KubernetesObject } from './manifests.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const HELM = join(ROOT, 'node_modules', '.bin', 'helm');

export const CHART = join(ROOT, 'deploy', 'helm', 'bearer-sidecar');

export interface HelmRun {
  readonly status: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** @throws Error when helm is missing: its package has a binary for Linux on x64 only */
export function helm(...args: string[]): HelmRun {
  const { status, stdout, stderr, error } = spawnSync(HELM, args, {
    encoding: 'utf8',
    // No home, no cluster, no plugins.
    env: { HOME: '/nonexistent', PATH: '/nonexistent', KUBECONFIG: '/nonexistent', ...GO_ENV },
  });
  if (error !== undefined) throw new Error('helm is needed by this test: npm ci brings it for Linux', { cause: error });
  return { status, stdout, stderr };
}

/** Renders a chart. @throws Error with what helm says of it */
export function helmTemplate(release: string, chart: string, ...args: string[]): KubernetesObject[] {
  const { status, stdout, stderr } = helm('template', release, chart, ...args);
  if (status !== 0) throw new Error(stderr);
  return parseManifests(stdout);
}
