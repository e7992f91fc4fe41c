/**
 * An upstream that compares every body with what its sender stated (witness.ts) and sends the response body that it is asked for.
 * It can refuse attempts after their bodies, so that they are sent again.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { closeServer, listenOnLoopback } from './loopback.ts';
import { SHORTEST_SECRET, registerSecret } from './secrets.ts';
import {
  RESPONSE_HEADER,
  IncrementalDigest,
  DIGEST_HEADER,
  contentOf,
  findAlteration,
  formatStatedBody,
  parseStatedBody,
  responseIdOf,
  stateBody,
} from './witness.ts';
import type { StatedBody } from './witness.ts';

/** One attempt whose body has arrived whole. */
export interface VerifiedAttempt {
  readonly stated: StatedBody;
  readonly method: string;
  /** The access token that it carried. */
  readonly token: string;
  /** From 1, for the same id. */
  readonly attempt: number;
}

export interface RefusalResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface VerifyingUpstreamOptions {
  /** What an attempt gets instead of the response that it asks for. Default: nothing. */
  readonly refuse?: (attempt: VerifiedAttempt) => RefusalResponse | 'reset' | undefined;
  /** The response waits for it. Default: nothing. */
  readonly hold?: (attempt: VerifiedAttempt) => Promise<void> | undefined;
}

export interface VerificationStats {
  /** Bodies that arrived whole. */
  wholeBodies: number;
  /** Bytes of these. */
  wholeBytes: number;
  /** Ids of the requests that ended before their body did. */
  readonly brokenOff: string[];
  /** Requests without a statement. */
  unstated: number;
  /** Requests whose first attempt was refused, and that came again. */
  replayed: number;
  /** Bodies that passed for complete and are not what was sent. */
  readonly altered: string[];
  /** How many times each id arrived whole. */
  readonly attempts: Map<string, number>;
}

export interface VerifyingUpstream extends AsyncDisposable {
  readonly url: string;
  readonly server: Server;
  readonly stats: VerificationStats;
}

export async function startVerifyingUpstream(options: VerifyingUpstreamOptions = {}): Promise<VerifyingUpstream> {
  const books = createVerificationStats();
  const server = createServer((message, response) => void serve(message, response, books, options));
  // No idle connection is closed under a request that must not be repeated.
  server.keepAliveTimeout = 600_000;
  const url = await listenOnLoopback(server);
  return { url, server, stats: books, [Symbol.asyncDispose]: () => closeServer(server) };
}

export function createVerificationStats(): VerificationStats {
  return { wholeBodies: 0, wholeBytes: 0, brokenOff: [], unstated: 0, replayed: 0, altered: [], attempts: new Map() };
}

async function serve(
  message: IncomingMessage,
  response: ServerResponse,
  books: VerificationStats,
  { refuse, hold }: VerifyingUpstreamOptions,
): Promise<void> {
  const attempt = await verifyRequest(message, books);
  if (attempt === undefined) {
    response.end();
    return;
  }
  const refusal = refuse?.(attempt);
  await hold?.(attempt);
  if (refusal === 'reset') message.socket.resetAndDestroy();
  else if (refusal !== undefined) response.writeHead(refusal.status, refusal.headers).end();
  else sendRequestedResponse(attempt.stated.id, message, response);
}

/**
 * Reads a request's body and enters it in the books.
 * @returns undefined when it is not whole or states nothing
 */
export function verifyRequest(
  message: IncomingMessage,
  books: VerificationStats,
): Promise<VerifiedAttempt | undefined> {
  const token = registerBearer(message);
  const received = new IncrementalDigest();
  const statement = parseStatedBody(message.headers[DIGEST_HEADER]);
  return new Promise((resolve) => {
    message.on('data', (chunk: Buffer) => received.add(chunk));
    message
      .once('error', () => message.destroy())
      .once('close', () => {
        if (!message.complete) books.brokenOff.push(statement?.id ?? 'unstated');
        resolve(undefined);
      });
    message.once('end', () => {
      books.wholeBodies++;
      books.wholeBytes += received.bytes;
      if (statement === undefined) {
        books.unstated++;
        resolve(undefined);
        return;
      }
      const alteration = findAlteration(statement, received);
      if (alteration !== undefined) books.altered.push(`upstream: ${alteration}`);
      const attempt = (books.attempts.get(statement.id) ?? 0) + 1;
      books.attempts.set(statement.id, attempt);
      if (attempt === 2) books.replayed++;
      resolve({ stated: statement, method: message.method ?? '', token, attempt });
    });
  });
}

/** Sends the response body that `x-witness-reply` asks for, or one of no bytes. */
export function sendRequestedResponse(id: string, message: IncomingMessage, response: ServerResponse): void {
  const [length = '0', framing = 'length'] = String(message.headers[RESPONSE_HEADER] ?? '0').split(' ');
  const body = contentOf(responseIdOf(id), Number(length));
  const stated = { [DIGEST_HEADER]: formatStatedBody(stateBody(id, body)) };
  if (framing === 'length') {
    response.writeHead(200, { ...stated, 'content-length': body.length }).end(body);
    return;
  }
  if (framing === 'close') {
    // Without a length and without chunks: the end of the connection is the end of the body.
    response.useChunkedEncodingByDefault = false;
    response.shouldKeepAlive = false;
  }
  response.writeHead(200, stated);
  const half = Math.floor(body.length / 2);
  if (half > 0) response.write(body.subarray(0, half));
  response.end(body.subarray(half));
}

let registeredBearer = '';

function registerBearer({ headers }: IncomingMessage): string {
  const bearer = headers.authorization?.replace(/^Bearer /i, '') ?? '';
  if (bearer !== registeredBearer && bearer.length >= SHORTEST_SECRET) {
    registeredBearer = bearer;
    registerSecret('an access token', bearer);
  }
  return bearer;
}
