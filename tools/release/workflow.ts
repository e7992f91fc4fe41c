/** .github/workflows/release.yml: its jobs and steps, and what a step needs that only GitHub has. */
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

type Texts = Readonly<Record<string, string>>;

export interface Step {
  readonly id?: string;
  readonly name?: string;
  readonly run?: string;
  readonly uses?: string;
  readonly env?: Texts;
  readonly with?: Readonly<Record<string, string | number | boolean>>;
}

export interface Job {
  readonly needs?: string | readonly string[];
  readonly permissions: Texts;
  readonly outputs?: Texts;
  readonly env?: Texts;
  readonly strategy?: { readonly matrix: { readonly include: readonly Texts[] } };
  readonly steps: readonly Step[];
}

export interface Workflow {
  readonly permissions: Texts;
  readonly jobs: Readonly<Record<'version' | 'packages' | 'platforms' | 'release', Job>>;
}

export function readWorkflow(root: string): { readonly text: string; readonly workflow: Workflow } {
  const text = readFileSync(join(root, '.github', 'workflows', 'release.yml'), 'utf8');
  return { text, workflow: parse(text) as Workflow };
}

/** Why a step does not run in a rehearsal, by its name or by its action. */
export const NOT_REHEARSED: Texts = {
  'Checks and tests': 'it has a command of its own, .ci/run',
  'sigstore/cosign-installer': 'downloads cosign from github.com',
  'Signature of the sums, verified as a user does': 'needs the identity that GitHub gives to a run of the workflow',
  'actions/attest-build-provenance': 'needs the identity that GitHub gives to a run of the workflow',
  'actions/attest-sbom': 'needs the identity that GitHub gives to a run of the workflow',
  'Draft release': 'needs a repository at GitHub',
};

/** Where a job runs. */
export interface JobPlace {
  /** Its clone of the commit. */
  readonly folder: string;
  /** What the jobs hand to each other. */
  readonly artifacts: string;
}

/** What an action does, done here. The clone is made, and Node.js is there, before the first step. */
export const ACTIONS: Readonly<Record<string, (place: JobPlace) => void>> = {
  'actions/checkout': () => undefined,
  'actions/setup-node': () => undefined,
  'actions/upload-artifact': ({ folder, artifacts }) => {
    cpSync(join(folder, 'release'), artifacts, { recursive: true });
  },
  'actions/download-artifact': ({ folder, artifacts }) => {
    cpSync(artifacts, join(folder, 'release'), { recursive: true });
  },
};

/** Such as `actions/checkout`; empty for a step without an action. */
export function actionOf(step: Step): string {
  return step.uses?.replace(/@.*/, '') ?? '';
}

/** @throws Error for an expression without a value */
export function fillIn(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\$\{\{ (.*?) \}\}/g, (expression, name: string) => {
    const value = values.get(name);
    if (value === undefined) throw new Error(`there is no value for ${expression}`);
    return value;
  });
}
