/**
 * An upstream that records every request and responds as configured. Arrival is the instant of the request's head;
 * the response is chosen when the body is complete. A body that its sender has stated (witness.ts) is compared: when it is another one,
 * disposal fails.
 */
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from 'node:http';
import { closeServer, listenOnLoopback } from './loopback.ts';
import { SHORTEST_SECRET, registerSecret } from './secrets.ts';
import { IncrementalDigest, DIGEST_HEADER, findAlteration, parseStatedBody } from './witness.ts';

export interface RecordedRequest {
  readonly method: string;
  /** The request target as received, query included. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Names and values in turn, as received. */
  readonly rawHeaders: readonly string[];
  /** The first MiB. */
  readonly body: Buffer;
  readonly bodyBytes: number;
  /** Hexadecimal. */
  readonly bodySha256: string;
  /** Of `performance.now()`. */
  readonly arrivedAt: number;
}

/** `index` counts requests from 0, in the order in which their heads arrived. */
export type RespondTo = (request: RecordedRequest, response: ServerResponse, index: number) => void | Promise<void>;

export interface RecordingUpstream extends AsyncDisposable {
  readonly url: string;
  /** Complete ones, in order of arrival of their heads. */
  readonly requests: readonly RecordedRequest[];
  readonly server: Server;
}

const RECORDED_BODY_BYTES = 1024 * 1024;

/** Responds with 200 and the body of the request. */
export const echo: RespondTo = (request, response) => {
  response.writeHead(200, { 'content-type': request.headers['content-type'] ?? 'text/plain' }).end(request.body);
};

export async function startRecordingUpstream(respond: RespondTo = echo): Promise<RecordingUpstream> {
  const requests: (RecordedRequest | undefined)[] = [];
  const altered: string[] = [];
  const server = createServer((message, response) => {
    const index = requests.push(undefined) - 1;
    record(message, altered)
      .then((request) => {
        requests[index] = request;
        return respond(request, response, index);
      })
      .catch(() => {
        // The caller disconnected within its body, or the test's own handler threw: both show as a cut.
        message.destroy();
      });
  });
  const url = await listenOnLoopback(server);
  return {
    url,
    server,
    get requests() {
      return requests.filter((request) => request !== undefined);
    },
    [Symbol.asyncDispose]: async () => {
      await closeServer(server);
      if (altered.length > 0)
        throw new Error(`the upstream took altered bodies for whole: ${altered.splice(0).join('; ')}`);
    },
  };
}

async function record(message: IncomingMessage, altered: string[]): Promise<RecordedRequest> {
  const arrivedAt = performance.now();
  const bearer = message.headers.authorization?.replace(/^Bearer /i, '') ?? '';
  if (bearer.length >= SHORTEST_SECRET) registerSecret('an access token', bearer);
  const kept: Buffer[] = [];
  const hash = createHash('sha256');
  const received = new IncrementalDigest();
  let bodyBytes = 0;
  for await (const chunk of message as AsyncIterable<Buffer>) {
    if (bodyBytes < RECORDED_BODY_BYTES) kept.push(chunk);
    bodyBytes += chunk.length;
    hash.update(chunk);
    received.add(chunk);
  }
  const stated = parseStatedBody(message.headers[DIGEST_HEADER]);
  const alteration = stated && findAlteration(stated, received);
  if (alteration !== undefined) altered.push(alteration);
  return {
    method: message.method ?? '',
    path: message.url ?? '',
    headers: message.headers,
    rawHeaders: message.rawHeaders,
    body: Buffer.concat(kept).subarray(0, RECORDED_BODY_BYTES),
    bodyBytes,
    bodySha256: hash.digest('hex'),
    arrivedAt,
  };
}
