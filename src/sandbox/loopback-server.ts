/** An HTTPS server on a free loopback port for the simulated servers: a handler returns each response as a value. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { STATUS_CODES } from '../platform/http.ts';
import type { ServerIdentity } from './certificate.ts';

/** A response. A text body is sent with its length, any other body is streamed. */
export interface SandboxResponse {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  readonly body: string | AsyncIterable<string>;
}

/** Handles one request; `gone` is aborted when the response has ended or the client has left. */
export type SandboxRequestHandler = (request: IncomingMessage, gone: AbortSignal) => Promise<SandboxResponse>;

/** Thrown by a handler: ends a request with this response. */
export class RequestRejection extends Error {
  readonly reply: SandboxResponse;

  constructor(reply: SandboxResponse) {
    super(`the sandbox rejects the request with ${String(reply.status)}`);
    this.reply = reply;
  }
}

export type LoopbackServer = Awaited<ReturnType<typeof serveOnLoopback>>;

/** Longer than common client pools keep a connection, so that they never reuse a closing one. */
const KEEP_ALIVE_MS = 75_000;

/** Bytes of an oversized body that are read and dropped, so that a client that reads after sending sees the 413. */
const MAX_DROPPED_BYTES = 1024 * 1024;

/** Listens on a free port of 127.0.0.1. @throws the listen error of node:net */
export async function serveOnLoopback({ cert, key }: ServerIdentity, handle: SandboxRequestHandler) {
  const server = createServer({ cert, key, keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    void handleRequest(handle, request, response);
  });
  // The server itself does not know the connections whose handshake goes on.
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  let closed: Promise<void> | undefined;
  return {
    url: new URL(`https://127.0.0.1:${port.toString()}/`),
    /** Closes the listener and all connections; further calls wait for the same end. */
    close: (): Promise<void> => {
      closed ??= new Promise((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      return closed;
    },
  };
}

export function jsonResponse(status: number, value: object, headers: OutgoingHttpHeaders = {}): SandboxResponse {
  const body = JSON.stringify(value);
  const content = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
  return { status, headers: { ...content, 'cache-control': 'no-store', ...headers }, body };
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

/** Undefined for a longer body, which is dropped; a much longer one closes the connection. Rejects when the client breaks off. */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= limitBytes) chunks.push(chunk);
    // Leaving the loop destroys the request, and with it the connection.
    else if (bytes > limitBytes + MAX_DROPPED_BYTES) break;
  }
  return bytes > limitBytes ? undefined : Buffer.concat(chunks);
}

export function pathOf(request: IncomingMessage): string {
  return (request.url ?? '/').replace(/\?.*$/s, '');
}

async function handleRequest(
  handle: SandboxRequestHandler,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  try {
    const { status, headers, body } = await handle(request, gone.signal).catch(toReply);
    response.writeHead(status, headers);
    if (typeof body === 'string') response.end(body);
    else await pipeline(Readable.from(body), response);
  } catch {
    // After the head the response can only be cut. When the client broke off, nothing is sent.
    response.destroy();
  }
}

/** What a handler has thrown, as a response. */
export function toReply(error: unknown): SandboxResponse {
  if (error instanceof RequestRejection) return error.reply;
  return jsonResponse(500, { title: 'The sandbox failed', status: 500, simulated: true });
}
