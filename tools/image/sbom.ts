/**
 * The bill of materials (CycloneDX) of what is installed with the sidecar. npm writes it, from a copy of the lock file that holds
 * nothing but the runtime packages: npm's own `--omit dev` also leaves out what both sides need (pino, jose and others).
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One thing that is part of the product. npm writes more fields than these; they are kept. */
export interface Component {
  readonly 'bom-ref': string;
  readonly type: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

/** A CycloneDX document, as far as it is looked at here. */
export interface Bom {
  readonly serialNumber: string;
  readonly metadata: { readonly timestamp?: string; readonly component: Component };
  readonly components: readonly Component[];
}

interface Manifest {
  readonly name: string;
  readonly devDependencies?: unknown;
}

interface LockFile {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>;
}

/**
 * The same document for the same lock file, whenever and wherever it is made.
 * @param root the folder that holds package.json and package-lock.json
 * @param more components that are no npm packages: what an image has beside them; default none
 * @param madeAt seconds since 1970 for the time stamp; default none is written
 * @throws Error when npm cannot describe the lock file
 */
export function createBom(root: string, more: readonly Component[] = [], madeAt?: number): Bom {
  const folder = mkdtempSync(join(tmpdir(), 'sbom-'));
  try {
    const name = copyRuntimeLock(root, folder);
    const written = runNpmSbom(folder);
    const metadata = without(written.metadata, 'timestamp');
    const components = [...written.components, ...more];
    return {
      ...written,
      serialNumber: serialOf(components),
      metadata: {
        ...(madeAt === undefined ? {} : { timestamp: new Date(madeAt * 1000).toISOString() }),
        ...metadata,
        component: { ...metadata.component, type: 'application', name },
      },
      components,
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** @returns the package's name, which npm would take from the folder's */
function copyRuntimeLock(root: string, folder: string): string {
  const manifest = without(readJson(join(root, 'package.json')) as Manifest, 'devDependencies');
  const lock = readJson(join(root, 'package-lock.json')) as LockFile;
  const packages = Object.entries(lock.packages).filter(
    // The one link is the development runtime; links carry no `dev`.
    ([path, { dev, link }]) => path.startsWith('node_modules/') && dev !== true && link !== true,
  );
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest));
  writeFileSync(
    join(folder, 'package-lock.json'),
    JSON.stringify({ ...lock, packages: { '': manifest, ...Object.fromEntries(packages) } }),
  );
  return manifest.name;
}

function runNpmSbom(folder: string): Bom {
  const args = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'];
  const printed = execFileSync('npm', args, { cwd: folder, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  return JSON.parse(printed) as Bom;
}

/** A UUID (RFC 9562, version 8) made of what it names, so that two builds of the same thing are the same. */
function serialOf(components: readonly Component[]): string {
  const digest = createHash('sha256').update(components.map(({ purl }) => purl).join('\n'));
  const [, a = '', b = '', c = '', d = '', e = ''] =
    /^(.{8})(.{4})(.{3})(.{3})(.{12})/.exec(digest.digest('hex')) ?? [];
  return `urn:uuid:${a}-${b}-8${c}-8${d}-${e}`;
}

function without<T extends object, K extends keyof T>(whole: T, key: K): Omit<T, K> {
  return Object.fromEntries(Object.entries(whole).filter(([name]) => name !== key)) as Omit<T, K>;
}

function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'));
}
