/** What grows, and how the sidecar is set up and asked at each size. */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { bareSubject, sidecarSubject, type RunningSubject, type BenchmarkSubject } from '../speed/subjects.ts';
import { CODES } from '../speed/upstream.ts';
import type { WrkOptions } from '../speed/wrk.ts';

export interface Curve {
  readonly name: string;
  readonly title: string;
  readonly sizes: readonly number[];
  /** @param folder where files may be left */
  prepare(size: number, terms: CurveOptions): CurveStep;
}

export interface CurveOptions {
  readonly main: string;
  readonly nodeFlags: readonly string[];
  readonly folder: string;
}

/** One size of one curve. */
interface CurveStep {
  readonly subject: BenchmarkSubject;
  readonly load: WrkOptions;
  /** Of a route that leads to the upstream. Default: none is needed. */
  readonly prefix?: string;
  /** Before anything is measured; ends by itself when the process does. */
  addBackgroundLoad?(running: RunningSubject): Promise<void>;
}

const GET = { path: '/item', connections: 64, bodyBytes: 0 };
const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];
/** Few enough that nearly all who ask are waiting. */
const FEW_IN_FLIGHT = 8;

export const CURVES: readonly Curve[] = [
  {
    name: 'queue',
    title: `requests at once, ${FEW_IN_FLIGHT} in flight, the others in the queue`,
    sizes: [10, 100, 1000, 10_000],
    prepare: (size, terms) => {
      const env = {
        SIDECAR_MAX_IN_FLIGHT: String(FEW_IN_FLIGHT),
        SIDECAR_QUEUE_MAX: '20000',
        // On a busy machine as well all are served, and none is refused.
        SIDECAR_QUEUE_TIMEOUT_MS: '600000',
        SIDECAR_DEADLINE_MS: '600000',
        SIDECAR_LISTEN_MAX_CONNECTIONS: '20000',
      };
      return { subject: sidecar(size, terms, env), load: { ...GET, connections: size } };
    },
  },
  {
    name: 'queue-bare',
    title: `the same in the bare pass-through, in undici's queue`,
    sizes: [10, 100, 1000, 10_000],
    prepare: (size, { nodeFlags }) => ({
      subject: bareSubject(nodeFlags, FEW_IN_FLIGHT),
      load: { ...GET, connections: size },
    }),
  },
  {
    name: 'idle',
    title: 'idle client connections, beside 64 busy ones',
    sizes: [10, 100, 1000, 10_000],
    prepare: (size, terms) => ({
      subject: sidecar(size, terms, { SIDECAR_LISTEN_MAX_CONNECTIONS: '20000' }),
      load: GET,
      addBackgroundLoad: ({ url }) => openIdle(url, size),
    }),
  },
  {
    name: 'routes',
    title: 'routes, all called in turns',
    sizes: [1, 10, 100, 200],
    prepare: (size, terms) => prepareRoutes(size, terms, (index) => index),
  },
  {
    name: 'route',
    title: 'routes, only the last called',
    sizes: [1, 10, 100, 200],
    prepare: (size, terms) => prepareRoutes(size, terms, () => size - 1),
  },
  {
    name: 'labels',
    title: 'combinations of labels (method, status)',
    sizes: [10, 100, 1000],
    prepare: (size, terms) => {
      const methods = METHODS.slice(0, size > 100 ? METHODS.length : 5);
      const codes = CODES.slice(0, Math.round(size / methods.length));
      const lines = codes.flatMap((code) => methods.map((method) => `${method} /code/${code}`));
      return {
        subject: sidecar(size, terms),
        load: { ...GET, targetsFile: writeTargets(terms, `labels-${size}`, lines) },
      };
    },
  },
];

function sidecar(
  size: number,
  { main, nodeFlags }: CurveOptions,
  env: Readonly<Record<string, string>> = {},
): BenchmarkSubject {
  return sidecarSubject({ name: `sidecar-${size}`, title: String(size), main, nodeFlags, env });
}

function prepareRoutes(size: number, terms: CurveOptions, routeOf: (index: number) => number): CurveStep {
  const file = join(terms.folder, `routes-${size}.json`);
  const all = Array.from({ length: size }, (_, index) => index);
  const routes = all.map((index) => ({ name: `r${index}`, pathPrefix: `/r${index}`, stripPrefix: true }));
  writeFileSync(file, JSON.stringify({ routes }));
  const requested = [...new Set(all.map(routeOf))];
  const targetsFile = writeTargets(
    terms,
    `routes-${requested.length}-of-${size}`,
    requested.map((index) => `GET /r${index}/item`),
  );
  const prefix = `/r${routeOf(0)}`;
  return { subject: sidecar(size, terms, { SIDECAR_CONFIG: file }), load: { ...GET, targetsFile }, prefix };
}

function writeTargets({ folder }: CurveOptions, name: string, lines: readonly string[]): string {
  const file = join(folder, `${name}.targets`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  return file;
}

/** Opened in small groups: no backlog is to overflow. */
async function openIdle(url: string, count: number): Promise<void> {
  const GROUP = 100;
  for (let opened = 0; opened < count; opened += GROUP)
    await Promise.all(Array.from({ length: Math.min(GROUP, count - opened) }, () => requestOnce(url)));
}

async function requestOnce(url: string): Promise<Socket> {
  const { hostname, port, host } = new URL(url);
  const socket = connect(Number(port), hostname);
  await once(socket, 'connect');
  socket.write(`GET /item HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  await once(socket, 'data');
  // What follows is of no interest, and neither is how it ends.
  return socket.on('error', () => socket.destroy()).resume();
}
