/**
 * A node:http server on a free loopback port that turns each request into a reply, which is a value. It bounds bodies,
 * counts answers by status and closes at once; what is asked and answered is left to the two simulated servers.
 */
import { once } from 'node:events';
import { createServer, STATUS_CODES } from '../platform/http.ts';
import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/** What is sent back. A text goes out with its length, anything else is streamed as it comes. */
export interface SandboxResponse {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | AsyncIterable<string>;
}

/** Answers one request; `gone` is aborted when the response has ended or the client has left. */
export type SandboxRequestHandler = (request: IncomingMessage, gone: AbortSignal) => Promise<SandboxResponse>;

/** A request body read to its end, or the news that it is longer than allowed. */
export type BodyReadResult = { readonly kind: 'whole'; readonly bytes: Buffer } | { readonly kind: 'too-large' };

export interface LoopbackServer {
  /** Origin of the server, `http://127.0.0.1:<port>/`. */
  readonly url: URL;
  /** How many answers went out with this status. */
  responseCount(status: number): number;
  /** Ends the listener and cuts every connection; further calls wait for the same end. */
  close(): Promise<void>;
}

/** Longer than the pools of usual clients keep a connection, so that they do not meet a closing one. */
const KEEP_ALIVE_MS = 75_000;

/** How much of an oversized body is read and dropped, so that a client that reads only after sending sees the 413. */
const MAX_DROPPED_BYTES = 1024 * 1024;

/**
 * Listens on 127.0.0.1, on a port that the system chooses.
 * @throws the listen error of node:net
 */
export async function serveOnLoopback(answer: SandboxRequestHandler): Promise<LoopbackServer> {
  const answered = new Map<number, number>();
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    response.once('finish', () => {
      answered.set(response.statusCode, (answered.get(response.statusCode) ?? 0) + 1);
    });
    void handleRequest(answer, request, response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    url: new URL(`http://127.0.0.1:${port.toString()}/`),
    responseCount: (status) => answered.get(status) ?? 0,
    close: () => (closed ??= closeImmediately(server)),
  };
}

/** A JSON answer that no cache keeps. */
export function jsonResponse(status: number, value: object, fields: OutgoingHttpHeaders = {}): SandboxResponse {
  const body = JSON.stringify(value);
  return {
    status,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'cache-control': 'no-store',
      ...fields,
    },
    body,
  };
}

/** An error of the simulated API: problem+json (RFC 9457), marked as simulated. The real API's error bodies are unknown. */
export function problemResponse(
  status: number,
  detail: string,
  members: object = {},
  headers: OutgoingHttpHeaders = {},
): SandboxResponse {
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, detail, ...members, simulated: true };
  return jsonResponse(status, problem, { 'content-type': 'application/problem+json', ...headers });
}

/** Reads up to `limitBytes`; past it nothing is kept, far past it the client is cut. Rejects when it breaks off. */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<BodyReadResult> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= limitBytes) chunks.push(chunk);
    // Leaving the loop destroys the request, and with it the connection.
    else if (bytes > limitBytes + MAX_DROPPED_BYTES) break;
  }
  return bytes > limitBytes ? { kind: 'too-large' } : { kind: 'whole', bytes: Buffer.concat(chunks) };
}

/** The target's path, without its query. */
export function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').replace(/\?.*$/s, '');
}

async function handleRequest(
  answer: SandboxRequestHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => {
    gone.abort();
  });
  try {
    await sendResponse(response, await answer(request, gone.signal));
  } catch {
    // The client broke off, or the simulation is at fault: a head that has gone out can only be cut.
    if (response.headersSent || response.destroyed) response.destroy();
    else await sendResponse(response, jsonResponse(500, { title: 'The sandbox failed', status: 500, simulated: true }));
  }
}

async function sendResponse(response: ServerResponse, reply: SandboxResponse): Promise<void> {
  response.writeHead(reply.status, reply.headers);
  if (typeof reply.body === 'string') response.end(reply.body);
  else await pipeline(Readable.from(reply.body), response);
}

async function closeImmediately(server: Server): Promise<void> {
  const end = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await end;
}
