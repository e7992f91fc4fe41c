/** The chart rendered with values, alone and as a dependency of an app's chart that is put together from what its README says. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { CHART, helmTemplate } from '../support/helm.ts';
import type { KubernetesObject } from '../support/manifests.ts';

export type Values = Readonly<Record<string, unknown>>;

/** What every installation has to say. */
export const CONFIG = {
  SIDECAR_BASE_URL: 'https://api.partner.example/v1',
  SIDECAR_AUTH_URL: 'https://auth.partner.example',
  SIDECAR_AUDIENCE: 'https://api.partner.example/',
};

/** Without it helm takes a version of Kubernetes as old as itself. */
export const CLUSTER = ['--kube-version', '1.33.0'];

/** A folder that goes with the test. */
export function scratchFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'chart-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  return folder;
}

/** JSON is YAML. @returns the file */
export function writeValues(values: Values): string {
  const file = join(scratchFolder(), 'values.yaml');
  writeFileSync(file, JSON.stringify(values));
  return file;
}

/** @throws Error with what helm says of the values */
export function render(values: Values, release = 'partner', ...args: string[]): KubernetesObject[] {
  return helmTemplate(release, CHART, '--values', writeValues({ config: CONFIG, ...values }), ...CLUSTER, ...args);
}

/** @param condition added to the dependency; the includes are then guarded as the README says */
export function renderInAppChart(values: Values, condition?: string): KubernetesObject[] {
  const folder = scratchFolder();
  const readme = readFileSync(join(CHART, 'README.md'), 'utf8');
  const blocks = [...readme.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block = '']) => block);
  const [dependencies = '', settings = '', template = ''] = blocks;
  const conditional = condition === undefined ? '' : `    condition: ${condition}\n`;
  writeFileSync(join(folder, 'Chart.yaml'), `apiVersion: v2\nname: app\nversion: 1.0.0\n${dependencies}${conditional}`);
  const own = parse(settings) as { 'bearer-sidecar': Values };
  writeFileSync(
    join(folder, 'values.yaml'),
    JSON.stringify({ 'bearer-sidecar': { ...own['bearer-sidecar'], ...values } }),
  );
  mkdirSync(join(folder, 'templates'));
  const head = 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: app }\n';
  const selector = 'spec:\n  selector: { matchLabels: { app: legacy-app } }\n';
  const body = condition === undefined ? template : guarded(readme, template);
  const deployment = head + body.replace(/^spec:\n/, selector);
  writeFileSync(join(folder, 'templates', 'deployment.yaml'), deployment);
  // What `helm dependency update` would do.
  cpSync(CHART, join(folder, 'charts', 'bearer-sidecar'), { recursive: true });
  return helmTemplate('partner', folder, ...CLUSTER);
}

/** The examples of values, by their files' names. */
export const VALUES_FILES: readonly string[] = readdirSync(join(CHART, 'ci'));

/** Beside an app the pod is that of an app's chart. */
export function renderValuesFile(name: string): KubernetesObject[] {
  const values = parse(readFileSync(join(CHART, 'ci', name), 'utf8')) as Values;
  return values.mode === 'standalone' ? render({ config: {}, ...values }) : renderInAppChart(values);
}

function guarded(readme: string, template: string): string {
  const opening = /`(\{\{- if [^`]*)`/.exec(readme)?.[1] ?? 'the README names no guard';
  return template.replaceAll(/^ *\{\{- include .*$/gm, (line) => `${opening}\n${line}\n{{- end }}`);
}
