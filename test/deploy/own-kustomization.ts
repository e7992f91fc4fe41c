/** A kustomization of a user's own, rendered next to the components, and what docs/kubernetes.md shows of such ones. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { onTestFinished } from 'vitest';
import { KUBERNETES_FOLDER, kustomize } from '../support/kustomize.ts';
import type { KubernetesObject } from '../support/manifests.ts';

export const DOCS = readFileSync(join(import.meta.dirname, '..', '..', 'docs', 'kubernetes.md'), 'utf8');

/** @param text in which deploy/kubernetes is the folder of that name; goes with the test */
export function kustomizeOwn(text: string, files: Readonly<Record<string, string>> = {}): KubernetesObject[] {
  const folder = mkdtempSync(join(tmpdir(), 'kustomization-'));
  onTestFinished(() => {
    rmSync(folder, { recursive: true });
  });
  writeFileSync(
    join(folder, 'kustomization.yaml'),
    text.replaceAll('deploy/kubernetes', relative(folder, KUBERNETES_FOLDER)),
  );
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
  return kustomize(folder);
}
