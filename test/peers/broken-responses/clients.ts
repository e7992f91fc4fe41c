/**
 * Client programs that read responses which break off. Each is called with its variant, a base URL and paths, reads each body to its end,
 * and prints a line of JSON for it: path, bytes of the body that it got, and the error, or "" when the program sees none.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const PROGRAMS = join(import.meta.dirname, 'programs');
const COMMONS_HTTPCLIENT = ['commons-httpclient', 'commons-logging', 'commons-codec'].map(
  (name) => `/usr/share/java/${name}.jar`,
);
/** For all calls of one client. */
const TIMEOUT_MS = 60_000;

export interface BrokenClient {
  readonly name: string;
  /** Its program and its variant. */
  readonly command: (folder: string) => readonly string[];
  /** Needs a program that the tests do not install. */
  readonly needs?: string;
  /** Compiles the program. */
  readonly build?: (folder: string) => void;
}

export interface BrokenRead {
  readonly path: string;
  readonly bytes: number;
  readonly error: string;
}

const java = (variant: string) => ({
  command: (folder: string) => ['java', '-XX:TieredStopAtLevel=1', '-cp', classPath(folder), 'Broken', variant],
  build: (folder: string) => {
    if (existsSync(join(folder, 'Broken.class'))) return;
    run('javac', '-cp', classPath(folder), '-d', folder, join(PROGRAMS, 'Broken.java'));
  },
});
const script = (interpreter: string, file: string, variant: string) => ({
  command: () => [interpreter, join(PROGRAMS, file), variant],
});

export const BROKEN_CLIENTS: readonly BrokenClient[] = [
  { name: 'Java HttpURLConnection', ...java('url-connection') },
  { name: 'Java HttpClient', ...java('http-client') },
  { name: 'commons-httpclient 3.1', ...java('commons') },
  { name: 'PHP fopen', ...script('php', 'broken.php', 'streams') },
  { name: 'PHP curl', ...script('php', 'broken.php', 'curl') },
  { name: 'Python http.client', ...script('/usr/bin/python3', 'broken.py', 'http.client') },
  { name: 'Python urllib', ...script('/usr/bin/python3', 'broken.py', 'urllib') },
  { name: 'Python requests', ...script('/usr/bin/python3', 'broken.py', 'requests') },
  { name: 'Perl LWP', ...script('perl', 'broken.pl', 'lwp') },
  { name: 'Ruby Net::HTTP', ...script('ruby', 'broken.rb', 'net-http') },
  {
    name: 'Go net/http',
    command: (folder) => [join(folder, 'broken-go'), 'net-http'],
    build: (folder) => run('go', 'build', '-o', join(folder, 'broken-go'), join(PROGRAMS, 'broken.go')),
  },
  { name: 'curl', ...script('bash', 'broken.sh', 'curl -sN') },
  { name: 'wget', ...script('bash', 'broken.sh', 'wget -q --tries=1 -O -') },
  { name: 'Node.js fetch', ...script(process.execPath, 'broken.mjs', 'fetch') },
  {
    name: 'Mono WebRequest',
    needs: '/usr/bin/mcs',
    command: (folder) => ['mono', join(folder, 'Broken.exe'), 'web-request'],
    build: (folder) => run('mcs', `-out:${join(folder, 'Broken.exe')}`, join(PROGRAMS, 'Broken.cs')),
  },
  {
    name: 'FreePascal TFPHTTPClient',
    needs: '/usr/bin/fpc',
    command: (folder) => [join(folder, 'broken-pas'), 'fphttpclient'],
    build: (folder) => run('fpc', '-v0', `-FE${folder}`, `-obroken-pas`, join(PROGRAMS, 'broken.pas')),
  },
];

/** A folder for compiled clients, which goes with it. */
export function createBuildFolder(): { readonly folder: string } & Disposable {
  const folder = mkdtempSync(join(tmpdir(), 'broken-clients-'));
  return { folder, [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }) };
}

/** @throws Error when the client does not print a line for each path */
export async function readBroken(
  { name, command, build }: BrokenClient,
  folder: string,
  baseUrl: string,
  paths: readonly string[],
): Promise<BrokenRead[]> {
  build?.(folder);
  const [program = '', ...args] = command(folder);
  const env = { PATH: process.env.PATH, HOME: folder };
  const child = spawn(program, [...args, baseUrl, ...paths], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    timeout: TIMEOUT_MS,
  });
  const reads: BrokenRead[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => reads.push(JSON.parse(line) as BrokenRead));
  await once(child, 'close');
  if (reads.length !== paths.length) throw new Error(`${name} read ${String(reads.length)} of ${String(paths.length)}`);
  return reads;
}

function classPath(folder: string): string {
  return [folder, ...COMMONS_HTTPCLIENT].join(':');
}

function run(program: string, ...args: readonly string[]): void {
  const env = { PATH: process.env.PATH, HOME: tmpdir(), GOCACHE: join(tmpdir(), 'go-cache'), GO111MODULE: 'off' };
  execFileSync(program, args, { stdio: 'pipe', env });
}
