/** What is measured: the sidecar in its forms, the yardstick, the peers, and how each is started. */
import { closeSync, mkdirSync, openSync, readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../support/loopback.ts';
import { newCredential } from '../../support/secrets.ts';
import { baseSettings } from '../../support/sidecar-process.ts';
import { CORES, launch } from './processes.ts';
import type { LaunchedProcess } from './processes.ts';
import { waitUntilResponding } from './ready.ts';
import { caddyConfiguration, haproxyConfiguration, nginxConfiguration } from './servers.ts';
import { readImageMemory } from '../../../tools/image/image-flags.ts';

/** Where it is to stand. */
export interface SubjectStartOptions {
  readonly upstreamUrl: string;
  readonly caFile: string;
  readonly tokenUrl: string;
  /** A folder of its own; the caller removes it. */
  readonly folder: string;
}

export interface RunningSubject extends LaunchedProcess {
  /** Requests go here. */
  readonly url: string;
  /** From the start of its process until it was ready, milliseconds. */
  readonly startMs: number;
  /** Before each measurement: what has been logged goes, so that no disk fills. */
  readonly truncateLog: () => void;
}

export interface BenchmarkSubject {
  readonly name: string;
  readonly title: string;
  /** The program that must be there, when npm does not bring it. */
  readonly program?: string;
  start(place: SubjectStartOptions): Promise<RunningSubject>;
}

/** Constant, and as long as the sidecar's own. */
const AUTHORIZATION = 'Bearer tok-0123456789abcdefABCDEFGH';

export interface SidecarOptions {
  readonly name: string;
  readonly title: string;
  /** The built `main.js`. */
  readonly main: string;
  readonly env?: Readonly<Record<string, string>>;
  /** For Node.js itself. */
  readonly nodeFlags: readonly string[];
}

export function sidecarSubject({ name, title, main, env = {}, nodeFlags }: SidecarOptions): BenchmarkSubject {
  return {
    name,
    title,
    async start({ upstreamUrl, caFile, tokenUrl, folder }) {
      const [port, adminPort] = [await freePort(), await freePort()];
      const log = join(folder, `${name}.log`);
      const stdout = openSync(log, 'a');
      const running = await startReady({
        command: [process.execPath, ...nodeFlags, main],
        folder,
        port,
        readyUrl: `http://127.0.0.1:${adminPort}/readyz`,
        stdout,
        env: {
          ...baseSettings(upstreamUrl, tokenUrl, newCredential()),
          ...(upstreamUrl.startsWith('https:') ? { SIDECAR_CA_FILE: caFile } : {}),
          SIDECAR_LISTEN: `127.0.0.1:${port}`,
          SIDECAR_ADMIN_LISTEN: `127.0.0.1:${adminPort}`,
          SIDECAR_MAX_IN_FLIGHT: '2048',
          SIDECAR_QUEUE_MAX: '10000',
          ...memoryVariables(nodeFlags),
          ...env,
        },
      });
      closeSync(stdout);
      return { ...running, truncateLog: () => truncateSync(log) };
    },
  };
}

/** Flags and the allocator's variables belong together. */
function memoryVariables(nodeFlags: readonly string[]): Record<string, string> {
  return nodeFlags.length === 0 ? {} : readImageMemory();
}

/** @param connections to the upstream, at most */
export function bareSubject(nodeFlags: readonly string[], connections?: number): BenchmarkSubject {
  return nodeSubject('bare', 'bare undici pass-through', nodeFlags, connections);
}

/** More than there are clients. */
const MANY_CONNECTIONS = 2048;

function nodeSubject(
  name: string,
  title: string,
  nodeFlags: readonly string[] = [],
  connections: number = MANY_CONNECTIONS,
): BenchmarkSubject {
  return {
    name,
    title,
    async start({ upstreamUrl, caFile, folder }) {
      const port = await freePort();
      return startReady({
        command: [process.execPath, ...nodeFlags, join(import.meta.dirname, 'proxies', `${name}.child.ts`)],
        folder,
        port,
        env: {
          NODE_ENV: 'production',
          ...memoryVariables(nodeFlags),
          PROXY_PORT: String(port),
          PROXY_UPSTREAM: upstreamUrl,
          PROXY_AUTHORIZATION: AUTHORIZATION,
          PROXY_CA_FILE: caFile,
          PROXY_CONNECTIONS: String(connections),
        },
      });
    },
  };
}

type Configure = (terms: { port: number; folder: string; authorization: string; place: SubjectStartOptions }) => string;

function serverSubject(
  program: string,
  title: string,
  configure: Configure,
  commandOf: (file: string, folder: string) => readonly [string, ...string[]],
): BenchmarkSubject {
  return {
    name: program,
    title,
    program,
    async start(place) {
      const port = await freePort();
      const folder = join(place.folder, `${program}-${port}`);
      mkdirSync(folder);
      const file = join(folder, 'configuration');
      writeFileSync(file, configure({ port, folder, authorization: AUTHORIZATION, place }));
      const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder, GOMAXPROCS: '1' };
      return startReady({ command: commandOf(file, folder), folder, port, env });
    },
  };
}

/** @param nodeFlags for the yardstick, as for the sidecar beside it */
export function listPeers(nodeFlags: readonly string[]): readonly BenchmarkSubject[] {
  return [
    bareSubject(nodeFlags),
    serverSubject('nginx', 'nginx', nginxConfiguration, (file, folder) => [
      'nginx',
      '-p',
      folder,
      '-c',
      file,
      '-e',
      join(folder, 'error.log'),
    ]),
    serverSubject('haproxy', 'HAProxy', haproxyConfiguration, (file) => ['haproxy', '-db', '-q', '-f', file]),
    serverSubject('caddy', 'Caddy', caddyConfiguration, (file) => [
      'caddy',
      'run',
      '--adapter',
      'caddyfile',
      '--config',
      file,
    ]),
    nodeSubject('http-proxy-3', 'http-proxy-3'),
    nodeSubject('fastify-http-proxy', '@fastify/http-proxy'),
    nodeSubject('fast-proxy', 'fast-proxy'),
    nodeSubject('httpxy', 'httpxy'),
  ];
}

interface StartOptions {
  readonly command: readonly [string, ...string[]];
  /** Its stderr is kept there. */
  readonly folder: string;
  readonly port: number;
  readonly env: Readonly<Record<string, string>>;
  /** The path that responds with 200 when it is ready. Default: an item, through it. */
  readonly readyUrl?: string;
  readonly stdout?: number | 'ignore';
}

async function startReady({
  command,
  folder,
  port,
  env,
  readyUrl,
  stdout = 'ignore',
}: StartOptions): Promise<RunningSubject> {
  const url = `http://127.0.0.1:${port}`;
  const words = join(folder, `stderr-${port}`);
  const stderr = openSync(words, 'a');
  const startedAt = performance.now();
  const launched = launch(command, { core: CORES.proxy, env, stdout, stderr });
  closeSync(stderr);
  try {
    await waitUntilResponding(readyUrl ?? `${url}/item`, launched.hasEnded);
  } catch (error) {
    await launched.stop();
    throw new Error(`${(error as Error).message}; it said: ${readFileSync(words, 'utf8')}`, { cause: error });
  }
  return { ...launched, url, startMs: performance.now() - startedAt, truncateLog: () => undefined };
}
