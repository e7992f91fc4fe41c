/**
 * What the Node.js binary of a Debian image needs of that image to run elsewhere: the shared libraries that the loader names, and
 * of the packages that they come from the licence and the status, by which scanners know what they look at.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A Debian package that a library was taken from. */
export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Its paragraph of dpkg's status file. */
  readonly status: string;
}

/**
 * The files that must be where they are for `program` to start, the loader among them.
 * @throws Error when ldd finds one missing
 */
export function findLibraries(program: string): string[] {
  const lines = execFileSync('ldd', [program], { encoding: 'utf8' }).split('\n');
  const missing = lines.filter((line) => line.includes('not found'));
  if (missing.length > 0) throw new Error(`${program} lacks: ${missing.join(' ').trim()}`);
  return lines.flatMap((line) => /(?:=>|^)\s*(\/\S+) \(0x/.exec(line)?.[1] ?? []);
}

/** The packages that these files belong to, each once, by name. */
export function findPackages(files: readonly string[]): DebianPackage[] {
  const names = new Set(files.map(ownerOf));
  return [...names].toSorted().map((name) => {
    const status = execFileSync('dpkg', ['--status', name], { encoding: 'utf8' });
    return { name, version: field(status, 'Version'), architecture: field(status, 'Architecture'), status };
  });
}

/** ID and VERSION_ID of /etc/os-release, as package URLs name a distribution. */
export function readDistribution(): { id: string; version: string } {
  const text = readFileSync('/etc/os-release', 'utf8');
  const value = (key: string): string => new RegExp(`^${key}="?([^"\n]*)`, 'm').exec(text)?.[1] ?? '';
  return { id: value('ID'), version: value('VERSION_ID') };
}

/** Since /lib became a link to /usr/lib, the loader and dpkg call a file by different names. */
function ownerOf(file: string): string {
  for (const path of [file, `/usr${file}`]) {
    const owner = searchOwner(path);
    if (owner !== undefined) return owner;
  }
  throw new Error(`no Debian package owns ${file}`);
}

function searchOwner(path: string): string | undefined {
  try {
    const found = execFileSync('dpkg', ['--search', path], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    return found.split(':')[0];
  } catch {
    // dpkg's way to say that it knows no such file.
    return undefined;
  }
}

function field(status: string, name: string): string {
  const value = new RegExp(`^${name}: (.*)$`, 'm').exec(status)?.[1];
  if (value === undefined) throw new Error(`dpkg states no ${name}`);
  return value;
}
