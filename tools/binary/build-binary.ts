/**
 * One file that runs without an installed Node.js: a copy of the Node.js that builds it, with the program, its assets and its
 * compiled code inside (https://nodejs.org/api/single-executable-applications.html). The code of Node.js is not changed (docs/adr/0024).
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ASSET_NAMES, locateAsset } from '../../src/platform/asset.ts';
import { bundleIntoOne } from '../bundle/bundle.ts';
import { gatherLicences } from '../bundle/licences.ts';
import { readImageFlags } from '../image/image-flags.ts';
import { readHostRequirements, type HostRequirements } from './host-requirements.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ASSETS = Object.fromEntries(ASSET_NAMES.map((name) => [name, fileURLToPath(locateAsset(name))]));

export interface Binary {
  readonly file: string;
  readonly bytes: number;
  readonly bundleBytes: number;
  /** The file with the licences of everything inside. */
  readonly licences: string;
  /** Whether the symbol table of Node.js was removed, a quarter of the size. */
  readonly isStripped: boolean;
  /** Undefined where it could not be read. */
  readonly requirements: HostRequirements | undefined;
}

/**
 * Builds for the platform that it runs on.
 * @param file path of the binary; the licences are written to FILE.licences.txt
 * @throws Error when a step fails, or when `FILE --version` does not print the version of package.json
 */
export async function buildBinary(file: string): Promise<Binary> {
  const work = mkdtempSync(join(tmpdir(), 'binary-'));
  try {
    mkdirSync(dirname(file), { recursive: true });
    // A running program can be replaced, but not written to.
    rmSync(file, { force: true });
    const main = join(work, 'main.mjs');
    const { code, modules } = await bundleIntoOne(ROOT);
    writeFileSync(main, code);
    const executable = join(work, 'node');
    const isStripped = copyNode(executable);
    embedProgram(work, { main, executable, output: file });
    // The signature of the copied Node.js no longer fits, and macOS does not start a file whose signature is wrong.
    if (process.platform === 'darwin') runOrThrow('codesign', ['--sign', '-', '--force', file]);
    const licences = `${file}.licences.txt`;
    writeFileSync(licences, gatherLicences(ROOT, [...modules, ...Object.values(ASSETS)]));
    checkVersion(file);
    return {
      file,
      bytes: statSync(file).size,
      bundleBytes: Buffer.byteLength(code),
      licences,
      isStripped,
      requirements: readHostRequirements(file),
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** Copies the running Node.js, where `strip` is installed without its symbol table. @returns whether it was left out */
function copyNode(executable: string): boolean {
  const isStripped =
    process.platform === 'linux' && spawnSync('strip', ['-o', executable, process.execPath]).status === 0;
  if (!isStripped) copyFileSync(process.execPath, executable);
  return isStripped;
}

/** V8 accepts compiled code only under the flags that it was compiled with. The share of the memory limit is left to the host. */
const RUNTIME_FLAGS = readImageFlags().filter((flag) => !flag.startsWith('--max-old-space-size'));

function embedProgram(work: string, paths: { main: string; executable: string; output: string }): void {
  const settings = join(work, 'sea.json');
  writeFileSync(
    settings,
    JSON.stringify({
      ...paths,
      mainFormat: 'module',
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      execArgv: RUNTIME_FLAGS,
      // All arguments belong to the program; NODE_OPTIONS is still read.
      execArgvExtension: 'env',
      assets: ASSETS,
    }),
  );
  runOrThrow(process.execPath, [...RUNTIME_FLAGS, '--build-sea', settings]);
}

function checkVersion(file: string): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const printed = runOrThrow(file, ['--version'], {}).trim();
  if (printed !== version) throw new Error(`${file} --version printed ${printed}, expected ${version}`);
}

function runOrThrow(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? stderr}`);
  return stdout;
}
