/** Runs the scripts of the release workflow as its runner does, each job in a clone of its own. */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CannotRunError, type Report } from './report.ts';
import { ACTIONS, NOT_REHEARSED, actionOf, fillIn, type Job, type Step, type Workflow } from './workflow.ts';

export interface Stage {
  readonly root: string;
  /** The commit that is released. */
  readonly commit: string;
  readonly version: string;
  /** Holds the clones of the jobs. */
  readonly folder: string;
  readonly artifacts: string;
  /** The environment of each script. */
  readonly env: NodeJS.ProcessEnv;
  readonly report: Report;
}

/** @returns the folder in which the last job has put the files of the release together */
export async function runJobs(workflow: Workflow, stage: Stage): Promise<string> {
  const values = new Map([
    ['github.ref_name', `v${stage.version}`],
    ['github.token', ''],
  ]);
  for (const [name, job] of Object.entries(workflow.jobs))
    for (const matrix of job.strategy?.matrix.include ?? [{}]) await runJob(name, job, matrix, values, stage);
  return join(stage.folder, 'release', 'release');
}

/** @param values is given the outputs of the job */
async function runJob(
  name: string,
  job: Job,
  matrix: Readonly<Record<string, string>>,
  values: Map<string, string>,
  stage: Stage,
): Promise<void> {
  const { platform } = matrix;
  const own = `${process.platform}-${process.arch}`;
  if (platform !== undefined && platform !== own) {
    await stage.report.step(`${name} on ${platform}`, () => {
      throw new CannotRunError(`this machine is ${own}`);
    });
    return;
  }
  const folder = join(stage.folder, name);
  execFileSync('git', ['clone', '--quiet', '--no-checkout', stage.root, folder]);
  execFileSync('git', ['-C', folder, 'checkout', '--quiet', '--detach', stage.commit]);
  const known = new Map([
    ...values,
    ...Object.entries(matrix).map(([key, value]) => [`matrix.${key}`, value] as const),
  ]);
  const env = { ...stage.env, ...fillInAll(job.env, known), GITHUB_SHA: stage.commit };
  for (const step of job.steps)
    await stage.report.step(`${name}: ${step.name ?? actionOf(step)}`, () => {
      const why = NOT_REHEARSED[step.name ?? ''] ?? NOT_REHEARSED[actionOf(step)];
      if (why !== undefined) throw new CannotRunError(why);
      if (step.run !== undefined) {
        runScript(step.run, { folder, env, step, values: known });
        return;
      }
      const act = ACTIONS[actionOf(step)];
      if (act === undefined) throw new Error(`nothing here does what ${actionOf(step)} does`);
      act({ folder, artifacts: stage.artifacts });
    });
  for (const [output, value] of Object.entries(fillInAll(job.outputs, known)))
    values.set(`needs.${name}.outputs.${output}`, value);
}

interface ScriptPlace {
  readonly folder: string;
  /** PATH is changed by what the script adds to it. */
  readonly env: NodeJS.ProcessEnv;
  readonly step: Step;
  /** Is given the outputs of the step. */
  readonly values: Map<string, string>;
}

function runScript(script: string, { folder, env, step, values }: ScriptPlace): void {
  const outputFile = join(folder, '.git', 'output');
  const pathFile = join(folder, '.git', 'path');
  for (const file of [outputFile, pathFile]) writeFileSync(file, '');
  const { status, stdout, stderr } = spawnSync('bash', ['--noprofile', '--norc', '-eo', 'pipefail', '-c', script], {
    cwd: folder,
    env: { ...env, ...fillInAll(step.env, values), GITHUB_OUTPUT: outputFile, GITHUB_PATH: pathFile },
    encoding: 'utf8',
    maxBuffer: Infinity,
  });
  if (status !== 0)
    throw new Error(`exit ${String(status)}\n${`${stdout}${stderr}`.trim().split('\n').slice(-20).join('\n')}`);
  for (const line of readLines(outputFile)) {
    const [key = '', value = ''] = line.split('=');
    values.set(`steps.${step.id ?? ''}.outputs.${key}`, value);
  }
  env.PATH = [...readLines(pathFile).toReversed(), env.PATH].join(delimiter);
}

function readLines(file: string): string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
}

function fillInAll(
  texts: Readonly<Record<string, string>> = {},
  values: ReadonlyMap<string, string>,
): Record<string, string> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, fillIn(text, values)]));
}
