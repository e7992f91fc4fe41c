/** What it was measured on and with: a figure without it says nothing. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg, release, totalmem, type as system } from 'node:os';
import { searchPath } from './processes.ts';

const GIB = 1024 ** 3;
const ROOT = new URL('../../../', import.meta.url);
const PACKAGES = ['undici', 'http-proxy-3', '@fastify/http-proxy', 'fastify', 'fast-proxy', 'httpxy'];
const PROGRAMS = [
  ['nginx', '-v'],
  ['haproxy', '-v'],
  ['caddy', 'version'],
  ['wrk', '-v'],
  ['openssl', 'version'],
] as const;

/** @returns lines of a list in Markdown */
export function describeMachine(): string[] {
  const model = cpus()[0]?.model ?? 'unknown';
  return [
    `CPU: ${model}, ${cpus().length} cores; ${(totalmem() / GIB).toFixed(0)} GiB of memory`,
    `kernel: ${system()} ${/^\d+\.\d+/.exec(release())?.[0] ?? ''}; load before the start: ${describeLoad()}`,
    `Node.js ${process.versions.node} (V8 ${process.versions.v8}); ${packageVersions().join(', ')}`,
    PROGRAMS.map(([program, flag]) => `${program} ${versionOf(program, flag)}`).join(', '),
  ];
}

/** Processes that wanted to run, on average over 1, 5 and 15 minutes. */
export function describeLoad(): string {
  return loadavg()
    .map((load) => load.toFixed(1))
    .join(', ');
}

function packageVersions(): string[] {
  const text = readFileSync(new URL('package.json', ROOT), 'utf8');
  const { dependencies, devDependencies } = JSON.parse(text) as Record<string, Record<string, string>>;
  const versions = { ...devDependencies, ...dependencies };
  return PACKAGES.map((name) => `${name} ${versions[name] ?? 'unknown'}`);
}

function versionOf(program: string, flag: string): string {
  const { stdout, stderr } = spawnSync(program, [flag], { env: { PATH: searchPath() }, encoding: 'utf8' });
  return /\d+\.\d+[\w.]*/.exec(`${stdout} ${stderr}`)?.[0] ?? 'is not there';
}
