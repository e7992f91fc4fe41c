/**
 * One file that runs where no Node.js is: a copy of the Node.js that builds it, with the program, its assets and its compiled code
 * inside (https://nodejs.org/api/single-executable-applications.html).
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ASSET_NAMES, locateAsset } from '../../src/platform/asset.ts';
import { bundleIntoOne } from '../bundle/bundle.ts';
import { gatherLicences } from '../bundle/licences.ts';
import { parseElf } from './elf.ts';
import { dropLibatomic } from './without-libatomic.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const ASSETS = Object.fromEntries(ASSET_NAMES.map((name) => [name, fileURLToPath(locateAsset(name))]));

export interface Binary {
  readonly file: string;
  readonly bytes: number;
  readonly bundleBytes: number;
  /** The licences of all that is inside. */
  readonly licences: string;
  /** Libraries and versions that the host must have; undefined where this is not known. */
  readonly requiredLibraries: readonly string[] | undefined;
  /** What would have made it smaller or need less, and did not work. */
  readonly notes: readonly string[];
}

/**
 * Builds for the platform at hand.
 * @param file where the binary goes; the licences go beside it, as FILE.licences.txt
 * @throws Error when a step fails, and when the binary does not say its version
 */
export async function buildBinary(file: string): Promise<Binary> {
  const work = mkdtempSync(join(tmpdir(), 'binary-'));
  try {
    mkdirSync(dirname(file), { recursive: true });
    // One that is running can be replaced and not be written to.
    rmSync(file, { force: true });
    const main = join(work, 'main.mjs');
    const bundle = await bundleIntoOne(ROOT);
    const code = bundle.files.map((file) => file.code).join('');
    writeFileSync(main, code);
    const { executable, remarks } = copyNode(work);
    embedProgram(work, { main, executable, output: file });
    const image = readFileSync(file);
    if (process.platform === 'linux') remarks.push(...removeLibatomic(file, image));
    // The signature of the copied Node.js no longer fits, and macOS runs nothing that is signed wrongly.
    if (process.platform === 'darwin') runOrThrow('codesign', ['--sign', '-', '--force', file]);
    const licences = `${file}.licences.txt`;
    writeFileSync(licences, gatherLicences(ROOT, [...bundle.modules, ...Object.values(ASSETS)]));
    checkVersion(file);
    const elf = parseElf(image);
    const needs = elf && [...elf.neededLibraries(), ...elf.newestSymbolVersions()];
    return {
      file,
      bytes: statSync(file).size,
      bundleBytes: Buffer.byteLength(code),
      licences,
      requiredLibraries: needs,
      notes: remarks,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** A copy of the running Node.js, without what only a debugger reads. */
function copyNode(work: string): { executable: string; remarks: string[] } {
  const executable = join(work, 'node');
  const stripped =
    process.platform === 'linux' && spawnSync('strip', ['-o', executable, process.execPath]).status === 0;
  if (stripped) return { executable, remarks: [] };
  copyFileSync(process.execPath, executable);
  return {
    executable,
    remarks: process.platform === 'linux' ? ['a quarter larger than need be: there is no strip'] : [],
  };
}

/** As in the image (Dockerfile). V8 takes back only code that was made under the same ones. */
const RUNTIME_FLAGS = [
  '--max-semi-space-size=4',
  '--no-concurrent-recompilation',
  '--heap-growing-percent=150',
  '--expose-gc',
];

function embedProgram(work: string, terms: { main: string; executable: string; output: string }): void {
  const settings = join(work, 'sea.json');
  writeFileSync(
    settings,
    JSON.stringify({
      ...terms,
      mainFormat: 'module',
      disableExperimentalSEAWarning: true,
      useCodeCache: true,
      execArgv: RUNTIME_FLAGS,
      // NODE_OPTIONS works as with every other installation; the arguments belong to the program.
      execArgvExtension: 'env',
      assets: ASSETS,
    }),
  );
  runOrThrow(process.execPath, [...RUNTIME_FLAGS, '--build-sea', settings]);
}

function removeLibatomic(file: string, image: Buffer): string[] {
  const obstacle = dropLibatomic(image);
  if (obstacle !== undefined) return [`libatomic.so.1 must be installed where it runs: ${obstacle}`];
  writeFileSync(file, image);
  chmodSync(file, 0o755);
  return [];
}

/** A binary that cannot say its version is none. */
function checkVersion(file: string): void {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
  const said = runOrThrow(file, ['--version'], {}).trim();
  if (said !== version) throw new Error(`${file} --version says ${said} and not ${version}`);
}

function runOrThrow(program: string, args: readonly string[], env: NodeJS.ProcessEnv = process.env): string {
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} failed: ${error?.message ?? stderr}`);
  return stdout;
}
