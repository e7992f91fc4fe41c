/**
 * The yardstick: node:http in front, undici's dispatch behind, the bearer put in and nothing else: no guard, no time limit, no
 * governor, no retry, no log, no metrics. It does what HTTP demands of a proxy (fields of one connection stay on it, a slow
 * reader is waited for, what breaks off breaks off on the other side) and not more. Small bodies are read whole, which is faster than a
 * stream: a yardstick should not be slower than it must.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Pool } from 'undici';
import type { Dispatcher } from 'undici';
import { AUTHORIZATION, CA, CONNECTIONS, PORT, UPSTREAM } from './terms.ts';

const pool = new Pool(UPSTREAM, {
  connections: CONNECTIONS,
  pipelining: 1,
  headersTimeout: 0,
  bodyTimeout: 0,
  allowH2: false,
  connect: { ca: CA },
});

class Relay implements Dispatcher.DispatchHandler {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    // The client disconnected while the request waited for a connection: this response would never be read.
    if (this.#response.destroyed) {
      controller.abort(new Error('the client has left'));
      return;
    }
    this.#response.once('close', () => {
      if (!this.#response.writableFinished) controller.abort(new Error('the client has left'));
    });
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number): void {
    if (status >= 200) this.#response.writeHead(status, responseHeaders(controller.rawHeaders as Buffer[]));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#response.write(chunk)) return;
    controller.pause();
    this.#response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    this.#response.end();
  }

  onResponseError(): void {
    if (this.#response.headersSent) this.#response.destroy();
    else this.#response.writeHead(502).end();
  }
}

function responseHeaders(raw: readonly Buffer[]): string[] {
  const fields: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at]!.toString('latin1');
    if (!isHopByHop(name)) fields.push(name, raw[at + 1]!.toString('latin1'));
  }
  return fields;
}

function requestHeaders(raw: readonly string[]): string[] {
  const fields: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at]!;
    if (!isHopByHop(name)) fields.push(name, raw[at + 1]!);
  }
  fields.push('authorization', AUTHORIZATION);
  return fields;
}

/** Fields of one connection, and those that are set anew. */
function isHopByHop(name: string): boolean {
  switch (name.length) {
    case 2:
      return name.toLowerCase() === 'te';
    case 4:
      return name.toLowerCase() === 'host';
    case 7:
      return /^(?:upgrade|trailer)$/i.test(name);
    case 10:
      return /^(?:connection|keep-alive)$/i.test(name);
    case 13:
      return name.toLowerCase() === 'authorization';
    case 17:
      return name.toLowerCase() === 'transfer-encoding';
    default:
      return false;
  }
}

const READ_WHOLE_BYTES = 16 * 1024;

createServer((request, response) => {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  if (length === undefined && coding === undefined) forward(request, response, null);
  else if (Number(length) <= READ_WHOLE_BYTES) readWhole(request, (body) => forward(request, response, body));
  else forward(request, response, request);
}).listen({ port: PORT, host: '127.0.0.1', backlog: 4096 });

function readWhole(request: IncomingMessage, then: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.once('end', () => then(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
}

function forward(request: IncomingMessage, response: ServerResponse, body: Buffer | IncomingMessage | null): void {
  const { url = '/', method = 'GET', rawHeaders } = request;
  pool.dispatch({ path: url, method, headers: requestHeaders(rawHeaders), body }, new Relay(response));
}
