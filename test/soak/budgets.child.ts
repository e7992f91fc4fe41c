/**
 * Clients that ask for more than the sidecar can hold, in a process of their own: `budgets.child.ts KIND URL COUNT SIZE`. Prints one line of
 * JSON when its requests are done or its connections are open; the second kind stays until its stdin ends.
 * `posts`: COUNT connections at once, each with one POST of SIZE bytes, until each has its response.
 * `heads`, `idle`, `bodies`: COUNT connections that stay with an unfinished head, without a byte, with an unfinished body.
 * `pipeline-get`, `pipeline-post`: COUNT connections with SIZE requests each, that read nothing.
 * `flood`, `flood-read`: COUNT connections that write packets of SIZE bytes full of requests for as long as they are taken; the second
 * kind reads the responses.
 * `fields`, `fields-partial`: COUNT connections with one head of 14 kB in SIZE fields, complete or without its end.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';

const [, , kind = '', url = '', count = '0', size = '0', path = '/a'] = process.argv;
const { hostname, port } = new URL(url);
const HEADERS = 'Host: 127.0.0.1\r\n';

type Result = string;

const HEAD = (bytes: number): string =>
  `POST ${path} HTTP/1.1\r\n${HEADERS}Connection: close\r\nContent-Length: ${bytes}\r\n\r\n`;
const BODY = Buffer.alloc(kind === 'posts' ? Number(size) : 0, 'x');

function open(): Socket {
  return connect({ host: hostname, port: Number(port), noDelay: true });
}

/** The status of the response, or how the connection ended without one. */
function post(bytes: number): Promise<Result> {
  const { promise, resolve } = Promise.withResolvers<Result>();
  const socket = open();
  let received = '';
  socket.on('connect', () => {
    // One write, as HTTP clients do it.
    socket.write(Buffer.concat([Buffer.from(HEAD(bytes)), BODY]));
  });
  socket.on('data', (chunk) => (received += chunk.toString('latin1')));
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(statusOf(received) ?? error.code ?? error.message));
  socket.on('end', () => socket.destroy());
  socket.on('close', () => resolve(statusOf(received) ?? 'closed without a response'));
  return promise;
}

function statusOf(received: string): string | undefined {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(received)?.[1];
  const code = /"code":"(\w+)"/.exec(received)?.[1];
  return status === undefined ? undefined : [status, code].filter(Boolean).join(' ');
}

function countResults(results: readonly Result[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const result of results) counts[result] = (counts[result] ?? 0) + 1;
  return counts;
}

const FIRST_BYTES: Readonly<Record<string, () => string>> = {
  heads: () => `GET ${path} HTTP/1.1\r\n${HEADERS}X-Slow: `,
  idle: () => '',
  bodies: () => `POST ${path} HTTP/1.1\r\n${HEADERS}Content-Length: 100\r\n\r\nhalf`,
  'pipeline-get': () => `GET ${path} HTTP/1.1\r\n${HEADERS}\r\n`.repeat(Number(size)),
  'pipeline-post': () => `POST ${path} HTTP/1.1\r\n${HEADERS}Content-Length: 4\r\n\r\nbody`.repeat(Number(size)),
  flood: firstPacket,
  'flood-read': firstPacket,
  fields: () => `${bigHead()}\r\n`,
  'fields-partial': bigHead,
};

/** More requests than a connection may have pending. */
function firstPacket(): string {
  return `GET ${path} HTTP/1.1\r\n${HEADERS}\r\n`.repeat(100);
}

const SHORTEST_REQUEST = 'GET / HTTP/1.1\r\n\r\n';

function bigHead(): string {
  const fields = Number(size);
  const value = 'v'.repeat(Math.floor(14_000 / fields) - 5);
  return `GET ${path} HTTP/1.1\r\n${HEADERS}${`X: ${value}\r\n`.repeat(fields)}`;
}

/** Writes the same requests again and again. */
function flood(socket: Socket, packet: string): void {
  if (socket.destroyed) return;
  if (socket.write(packet)) setImmediate(flood, socket, packet);
  else socket.once('drain', () => flood(socket, packet));
}

/** Writes, and but for `flood-read` reads nothing: a connection that the sidecar closes is not noticed. */
async function openConnections(): Promise<number> {
  const bytes = FIRST_BYTES[kind]?.() ?? '';
  const opened = Array.from({ length: Number(count) }, async () => {
    const socket = open();
    socket.on('error', () => socket.destroy());
    return new Promise<boolean>((resolve) => {
      socket.on('close', () => resolve(false));
      socket.on('connect', () => {
        if (kind === 'flood-read') socket.resume();
        else socket.pause();
        if (bytes === '') resolve(true);
        else socket.write(bytes, () => resolve(true));
        if (kind.startsWith('flood')) flood(socket, SHORTEST_REQUEST.repeat(Number(size) / SHORTEST_REQUEST.length));
      });
      // What does not fit into the buffers of the connection stays here.
      if (kind.startsWith('pipeline')) setTimeout(() => resolve(true), 2000);
    });
  });
  return (await Promise.all(opened)).filter(Boolean).length;
}

if (kind === 'posts') {
  const results = await Promise.all(Array.from({ length: Number(count) }, () => post(Number(size))));
  console.log(JSON.stringify(countResults(results)));
  process.exit();
} else {
  console.log(JSON.stringify({ open: await openConnections() }));
  process.stdin.on('end', () => process.exit()).resume();
}
