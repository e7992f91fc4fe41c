/** A kustomization of a user's own, rendered beside a copy of the components, and what the pages on Kubernetes show of such ones. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { onTestFinished } from 'vitest';
import { KUBERNETES_FOLDER, kustomize } from '../support/kustomize.ts';
import type { KubernetesObject } from '../support/manifests.ts';

export const DOCS = ['kubernetes.md', 'kubernetes-kustomize.md', 'kubernetes-platform.md']
  .map((page) => readFileSync(join(import.meta.dirname, '..', '..', 'docs', page), 'utf8'))
  .join('\n');

/** @param text in which deploy/kubernetes is the folder of that name, and bearer-sidecar a copy of its components; goes with the test */
export function kustomizeOwn(text: string, files: Readonly<Record<string, string>> = {}): KubernetesObject[] {
  const folder = mkdtempSync(join(tmpdir(), 'kustomization-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  writeFileSync(
    join(folder, 'kustomization.yaml'),
    text.replaceAll('deploy/kubernetes', relative(folder, KUBERNETES_FOLDER)),
  );
  cpSync(join(KUBERNETES_FOLDER, 'components'), join(folder, 'bearer-sidecar'), { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return kustomize(folder);
}
