/** A minimal valid environment, and functions that load it with changes. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load/load.ts';
import type { LoadOptions } from '../../src/config/load/load.ts';
import { formatProblems } from '../../src/config/load/problems.ts';

export const BASE_ENV = {
  SIDECAR_BASE_URL: 'https://api.example.com/v1',
  SIDECAR_AUTH_URL: 'https://login.example.com',
  SIDECAR_CLIENT_ID: 'client-of-the-tests',
  SIDECAR_CLIENT_SECRET: 'correct-horse-battery-staple',
  SIDECAR_AUDIENCE: 'https://api.example.com',
} as const;

type Env = Readonly<Record<string, string | undefined>>;

/** A Config with the settings of its only route and credential at the top. */
export type SimpleConfig = Config & Config['routes'][0] & Config['credentials'][number];

/** The Config of the base environment with changes. @throws Error when it is invalid */
export function configOf(env: Env = {}, rest: Omit<LoadOptions, 'env'> = {}): SimpleConfig {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, ...rest });
  if (!loaded.ok) throw new Error(`refused: ${formatProblems(loaded.problems)}`);
  return simple(loaded.config);
}

/** @throws Error when there is not exactly one of each */
export function simple(config: Config): SimpleConfig {
  const [credential, ...others] = config.credentials;
  if (credential === undefined || others.length > 0 || config.routes.length > 1)
    throw new Error('several are configured');
  return Object.freeze({ ...config, ...config.routes[0], ...credential });
}

/** The problem lines of the base environment with changes, without the program's name. @throws Error when it is valid */
export function problemsOf(env: Env = {}, rest: Omit<LoadOptions, 'env'> = {}): string[] {
  const loaded = loadConfig({ env: { ...BASE_ENV, ...env }, ...rest });
  if (loaded.ok) throw new Error('accepted');
  return formatProblems(loaded.problems)
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^bearer-sidecar: /, ''));
}

/** A directory for this test, removed when it ends. */
export function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'sidecar-config-'));
  onTestFinished(() => {
    rmSync(path, { recursive: true, force: true });
  });
  return path;
}

/** Writes a file for this test and returns its path. */
export function scratchFile(contents: string | Uint8Array, name = 'file'): string {
  const path = join(scratchDirectory(), name);
  writeFileSync(path, contents);
  return path;
}
