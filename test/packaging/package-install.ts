/**
 * The package as npm packs it, and a way to install it without a network, from what this project has installed already. The
 * project's own dist/ is left alone: others may be running it.
 */
import { execFile } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, readdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const ROOT = join(import.meta.dirname, '..', '..');
/** What a build reads. */
const SOURCES = ['package.json', 'src', 'tools', 'config', 'README.md', 'LICENSE'];
const run = promisify(execFile);

/** The project's Node.js comes first, and with it the tools that the project has installed. */
export const ENVIRONMENT = {
  ...process.env,
  PATH: join(ROOT, 'node_modules', '.bin') + delimiter + (process.env.PATH ?? ''),
};

export interface Tarball {
  readonly file: string;
  /** Paths of what is inside. */
  readonly contents: readonly string[];
  readonly bytes: number;
  readonly unpackedBytes: number;
}

/** `npm pack`, with the build that belongs to it, in a copy of the sources. */
export async function packPackage(folder: string): Promise<Tarball> {
  const copy = join(folder, 'copy');
  for (const name of SOURCES) cpSync(join(ROOT, name), join(copy, name), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], {
    cwd: copy,
    env: ENVIRONMENT,
  });
  // A build may have printed before the report.
  const [report] = JSON.parse(stdout.slice(stdout.search(/^\[/m))) as [PackReport];
  const contents = report.files.map(({ path }) => path);
  return { file: join(folder, report.filename), contents, bytes: report.size, unpackedBytes: report.unpackedSize };
}

interface PackReport {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** Puts into the folder what npm would put there: the package, and of the lock file's packages those that are not for development. */
export async function installFromHere(tarball: string, folder: string): Promise<void> {
  const installed = join(folder, 'node_modules', 'bearer-sidecar');
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', installed, '--strip-components=1']);
  for (const path of runtimePackages()) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
  const commands = join(folder, 'node_modules', '.bin');
  mkdirSync(commands);
  symlinkSync(join('..', 'bearer-sidecar', 'dist', 'main.js'), join(commands, 'bearer-sidecar'));
  await run('chmod', ['+x', join(installed, 'dist', 'main.js')]);
}

function runtimePackages(): string[] {
  const lock = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as LockFile;
  return Object.entries(lock.packages)
    .filter(([path, { dev, link }]) => path.startsWith('node_modules/') && dev !== true && link !== true)
    .map(([path]) => path);
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>;
}

/** Every installed package with the names of its scripts; native code counts as one. */
export function scriptsOf(folder: string): Map<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const match = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\/(package\.json|binding\.gyp)$/.exec(path);
    const [, name = '', file] = match ?? [];
    if (file === 'package.json') {
      const { scripts = {} } = JSON.parse(readFileSync(join(folder, path), 'utf8')) as {
        scripts?: Record<string, string>;
      };
      found.set(name, [...(found.get(name) ?? []), ...Object.keys(scripts)]);
    } else if (file === 'binding.gyp') found.set(name, [...(found.get(name) ?? []), 'install']);
  }
  return found;
}
