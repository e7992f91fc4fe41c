/** Node.js programs of other versions, from npm, kept in the user's cache folder so that each is fetched once. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { oldestNode } from '../../tools/bundle/bundle.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'bearer-sidecar', 'node');
const run = promisify(execFile);

/** The version of the Node.js that runs this. */
const OWN_NODE = process.versions.node;
/** The oldest that package.json promises. */
export const OLDEST_NODE = oldestNode(ROOT);
/** The oldest, the oldest and the newest of the long-term one between, and the one that runs this. */
export const NODE_VERSIONS: readonly string[] = [OLDEST_NODE, '24.9.0', '24', OWN_NODE];

/**
 * @param version exact, or a range such as `24`: then what npm takes for it, or what was taken the first time
 * @returns the path of the program
 * @throws Error when npm has no such version for this platform
 */
export async function installNode(version: string): Promise<string> {
  if (version === OWN_NODE) return process.execPath;
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(CACHE, version);
  const program = join(folder, 'node_modules', name, 'bin', 'node');
  if (existsSync(program)) return program;
  mkdirSync(CACHE, { recursive: true });
  const draft = mkdtempSync(join(CACHE, 'draft-'));
  writeFileSync(join(draft, 'package.json'), '{ "private": true }\n');
  await run('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', `${name}@${version}`], { cwd: draft });
  try {
    renameSync(draft, folder);
  } catch (error) {
    // Another run was faster: its program is as good.
    rmSync(draft, { recursive: true, force: true });
    if (!existsSync(program)) throw error;
  }
  return program;
}
