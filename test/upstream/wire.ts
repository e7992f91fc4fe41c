/** A server of raw bytes, and attempts against it whose outcome can be looked at. */
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { systemClock } from '../../src/platform/clock.ts';
import { selectNoProxy } from '../../src/platform/egress/proxy-selector.ts';
import type { Clock } from '../../src/platform/clock.ts';
import type { UpstreamResponse } from '../../src/upstream/upstream-response.ts';
import type { ResponseReceiver } from '../../src/upstream/response-receiver.ts';
import type { ResponseSink, AttemptResult } from '../../src/upstream/response-receiver.ts';
import { Upstream } from '../../src/upstream/client.ts';
import type { UpstreamOptions, UpstreamRequest } from '../../src/upstream/client.ts';

export interface WireServer extends AsyncDisposable {
  readonly url: URL;
  /** One text per connection, Latin-1, all that came on it so far. */
  readonly received: readonly string[];
  readonly sockets: readonly Socket[];
}

/** @param respond runs with every packet: the connection, all that came on it, and which connection it is */
export async function startWireServer(
  respond: (socket: Socket, received: string, index: number) => void,
): Promise<WireServer> {
  const received: string[] = [];
  const sockets: Socket[] = [];
  const server = createServer({ noDelay: true }, (socket) => {
    const index = sockets.push(socket) - 1;
    received[index] = '';
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      const all = (received[index] ?? '') + bytes.toString('latin1');
      received[index] = all;
      respond(socket, all, index);
    });
  });
  const url = await listen(server);
  return {
    url,
    received,
    sockets,
    [Symbol.asyncDispose]: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function listen(server: Server): Promise<URL> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return new URL(`http://127.0.0.1:${String((server.address() as AddressInfo).port)}`);
}

/** Responds once per connection, when the head of a request has come. */
export function afterHead(bytes: string | Buffer, then: (socket: Socket) => void = () => undefined) {
  const responded = new WeakSet<Socket>();
  return (socket: Socket, received: string): void => {
    if (responded.has(socket) || !received.includes('\r\n\r\n')) return;
    responded.add(socket);
    socket.write(bytes, 'latin1', () => {
      then(socket);
    });
  };
}

/** Records what a client would see. */
export class SeenResponse implements ResponseSink {
  head: UpstreamResponse | undefined;
  readonly chunks: Buffer[] = [];
  state: 'open' | 'ended' | 'cut' = 'open';
  /** Called back by a test that plays a slow client. */
  resume: (() => void) | undefined;
  takesMore = true;
  /** Called with every chunk. */
  onChunk: () => void = () => undefined;

  begin(head: UpstreamResponse): void {
    this.head = head;
  }

  write(chunk: Buffer): boolean {
    this.chunks.push(chunk);
    this.onChunk();
    return this.takesMore;
  }

  onDrain(resume: () => void): void {
    this.resume = resume;
  }

  end(): void {
    this.state = 'ended';
  }

  discardUnsent(): boolean {
    return false;
  }

  cut(): void {
    this.state = 'cut';
  }

  get body(): Buffer {
    return Buffer.concat(this.chunks);
  }
}

export interface Sent {
  readonly attempt: ResponseReceiver;
  readonly seen: SeenResponse;
  readonly heads: readonly UpstreamResponse[];
  readonly end: Promise<AttemptResult>;
}

export interface SendOptions extends Partial<UpstreamRequest> {
  /** Default: streamed. */
  readonly hold?: boolean;
  readonly requestTimeoutMs?: number;
  readonly bodyIdleTimeoutMs?: number;
  readonly seen?: SeenResponse;
}

/** Sends one request. Default: a GET of `/`. */
export function send(upstream: Upstream, options: SendOptions = {}): Sent {
  const { hold = false, requestTimeoutMs = 30_000, bodyIdleTimeoutMs = 0, seen = new SeenResponse() } = options;
  const heads: UpstreamResponse[] = [];
  const { method = 'GET', path = '/', headers = [], body, contentLength, needsNewConnection = false } = options;
  const attempt = upstream.send(
    { method, path, headers, body, contentLength, needsNewConnection },
    {
      onStart: () => undefined,
      onHead: (head) => {
        heads.push(head);
        return hold ? 'hold' : seen;
      },
      onBufferExceeded: () => seen,
      timeouts: { requestTimeoutMs, bodyIdleTimeoutMs },
    },
  );
  return { attempt, seen, heads, end: attempt.ended };
}

export type OwnedUpstream = Upstream & AsyncDisposable;

export function openUpstream(baseUrl: URL, options: Partial<UpstreamOptions> & { clock?: Clock } = {}): OwnedUpstream {
  const upstream = new Upstream({
    clock: systemClock,
    baseUrl,
    trust: undefined,
    egress: selectNoProxy,
    connectTimeoutMs: 5000,
    maxConnectionAgeMs: 0,
    observe: () => undefined,
    maxConnections: 4,
    maxHeaderBytes: 65_536,
    ...options,
  });
  return Object.assign(upstream, { [Symbol.asyncDispose]: () => upstream.close() });
}

/** The outcome if there is one, else `waiting`. */
export function soFar(end: Promise<AttemptResult>): Promise<AttemptResult | 'waiting'> {
  return Promise.race([end, Promise.resolve('waiting' as const)]);
}

/** Turns the event loop until `isTrue`. */
export async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise(setImmediate);
}
