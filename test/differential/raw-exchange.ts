/** One exchange over raw connections: what an origin server received, byte for byte, and what the client got back. */
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { readRequest, valuesOf } from '../hostile/strict-request.ts';
import type { WitnessedRequest } from '../hostile/strict-request.ts';
import { openSocket } from '../support/raw-client.ts';
import { ResponseReader, headerOf } from '../support/raw-response.ts';
import type { ReceivedResponse } from '../support/raw-response.ts';

export type Fields = readonly (readonly [name: string, value: string])[];

export interface SeenRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly headers: Fields;
  /** Latin1. */
  readonly body: string;
  /** Names in lower case. */
  readonly trailers: readonly string[];
}

export interface SeenResponse extends Omit<ReceivedResponse, 'body'> {
  /** Latin1. */
  readonly body: string;
  /** Interim responses before it. */
  readonly interim: number;
  /** The state of the connection: a further request on it got a response, or the server ended it. */
  readonly end: 'kept' | 'closed';
}

export interface Exchange {
  /** None when the request did not arrive. */
  readonly request: SeenRequest | undefined;
  readonly response: SeenResponse | undefined;
}

export interface Traffic {
  readonly method: string;
  /** Latin1; the head ends with an empty line. */
  readonly head: string;
  readonly body: string;
  /** Latin1, as the upstream writes it. */
  readonly response: string;
  /** The upstream closes its connection behind the response. */
  readonly closes: boolean;
  /** Where the first packet of the body and of the response ends, in parts of them. */
  readonly cut: number;
}

const PROBE = 'GET /probe HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n';
const PROBE_RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nprobe';
const CONTINUE = 'HTTP/1.1 100 Continue\r\n\r\n';

type Reply = Pick<Traffic, 'response' | 'closes' | 'cut'>;

export interface RawOrigin extends AsyncDisposable {
  readonly url: string;
  /** Sets the response from now on, and clears `seen`. */
  respondWith(traffic: Reply): void;
  /** Whole requests since then, without probes. */
  readonly seen: readonly SeenRequest[];
  /** What was no request, since the start. */
  readonly malformed: readonly string[];
}

export async function startRawOrigin(): Promise<RawOrigin> {
  let reply: Reply = { response: PROBE_RESPONSE, closes: false, cut: 1 };
  let seen: SeenRequest[] = [];
  const malformed: string[] = [];
  const sockets = new Set<Socket>();
  const respond = (socket: Socket, request: WitnessedRequest): void => {
    if (request.target === '/probe') {
      socket.write(PROBE_RESPONSE);
      return;
    }
    seen.push(viewOf(request));
    const wantsClose = valuesOf(request, 'connection').join().toLowerCase().includes('close');
    const ends = reply.closes || wantsClose || request.version === 'HTTP/1.0';
    void writeInTwo(socket, reply.response, reply.cut).then(() => {
      if (ends) socket.end();
    });
  };
  const server = createServer({ noDelay: true }, (socket) => {
    let unread = '';
    let hasContinued = false;
    sockets.add(socket);
    socket.on('error', () => socket.destroy()).on('close', () => sockets.delete(socket));
    socket.on('data', (chunk: Buffer) => {
      unread += chunk.toString('latin1');
      for (let reading = readRequest(unread); unread !== ''; reading = readRequest(unread)) {
        if (reading.kind === 'malformed') {
          malformed.push(`${reading.why}: ${unread}`);
          socket.destroy();
          return;
        }
        if (reading.kind === 'incomplete') {
          if (!hasContinued && /^expect: *100-continue/im.test(unread) && unread.includes('\r\n\r\n')) {
            hasContinued = true;
            socket.write(CONTINUE);
          }
          return;
        }
        unread = unread.slice(reading.length);
        hasContinued = false;
        respond(socket, reading.request);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    malformed,
    get seen() {
      return seen;
    },
    respondWith: (next) => {
      reply = next;
      seen = [];
    },
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Sends the traffic to `url`, behind which `origin` is, at once or through a proxy. */
export async function exchange(url: string, origin: RawOrigin, traffic: Traffic): Promise<Exchange> {
  origin.respondWith(traffic);
  const response = await converse(url, traffic);
  if (origin.seen.length > 1) throw new Error(`the origin received ${String(origin.seen.length)} requests`);
  return { request: origin.seen[0], response };
}

async function converse(url: string, { method, head, body, cut }: Traffic): Promise<SeenResponse | undefined> {
  const socket = await openSocket(url);
  const reader = new ResponseReader();
  let isEnded = false;
  let wake = (): void => undefined;
  socket.on('error', () => socket.destroy());
  socket.on('data', (chunk: Buffer) => {
    reader.push(chunk);
    wake();
  });
  const end = (): void => {
    isEnded = true;
    reader.end();
    wake();
  };
  socket.on('end', end).on('close', end);
  const until = async (holds: () => boolean): Promise<void> => {
    while (!isEnded && !holds()) await new Promise<void>((resolve) => (wake = resolve));
  };
  reader.expect(method);
  socket.write(head, 'latin1');
  if (/^expect: *100-continue/im.test(head)) await until(() => reader.interim + reader.responses.length > 0);
  await writeInTwo(socket, body, cut);
  await until(() => reader.responses.length > 0);
  const [response] = reader.responses;
  const { interim } = reader;
  if (response === undefined) return undefined;
  const isLast = headerOf(response, 'connection')?.toLowerCase() === 'close' || response.framing === 'close';
  if (isLast) await until(() => false);
  else {
    reader.expect('GET');
    socket.write(PROBE);
    await until(() => reader.responses.length > 1);
  }
  socket.destroy();
  return { ...response, body: response.body.toString('latin1'), interim, end: isLast ? 'closed' : keptOr(reader) };
}

/** With turns of the event loop between the packets, in which the first is read. */
async function writeInTwo(socket: Socket, text: string, cut: number): Promise<void> {
  const at = behindStatusLine(text, Math.round(text.length * cut));
  socket.write(text.slice(0, at), 'latin1');
  if (at === text.length) return;
  for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
  socket.write(text.slice(at), 'latin1');
}

/** Undici keeps only the last part of a reason phrase that comes in two packets: a known limit, which is on the page. */
function behindStatusLine(text: string, at: number): number {
  const before = text.lastIndexOf('\r\n', at - 1);
  return text.startsWith('HTTP/', before < 0 ? 0 : before + 2) ? text.indexOf('\r\n', at) + 2 : at;
}

function keptOr(reader: ResponseReader): SeenResponse['end'] {
  return reader.responses[1]?.body.toString() === 'probe' ? 'kept' : 'closed';
}

function viewOf({ method, target, version, rawFields, body, trailers }: WitnessedRequest): SeenRequest {
  return { method, target, version, headers: rawFields, body, trailers };
}
