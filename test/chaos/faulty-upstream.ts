/**
 * An upstream for POSTs that does something else with each attempt: refuses it, carries it out and responds, or carries it out and lets
 * its client know nothing of it. Its own count of what it carried out is the truth of such a run.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../../src/platform/clock.ts';
import { closeServer, freePort } from '../support/loopback.ts';

type Act = (message: IncomingMessage, response: ServerResponse, random: Random) => void | Promise<void>;

interface Behaviour {
  /** How often it is chosen, compared with the others. */
  readonly weight: number;
  /** Reads the body and carries the call out before it acts. */
  readonly isExecuted: boolean;
  readonly act: Act;
}

const reset: Act = ({ socket }) => void socket.resetAndDestroy();
const stall: Act = () => undefined;
const respond =
  (status: number, headers: Readonly<Record<string, string>> = {}): Act =>
  (_, response) =>
    void response.writeHead(status, headers).end(`status ${String(status)}`);
/** Sends a head and half of its body, then breaks the connection. */
const breakOff =
  (status: number): Act =>
  ({ socket }, response) => {
    response.writeHead(status, { 'content-length': '100', 'retry-after-ms': '5' });
    response.write('half', () => socket.resetAndDestroy());
  };
const succeed: Act = ({ headers }, response) => void response.end(`done ${String(headers['x-request-id'])}`);

const BEHAVIOURS: Readonly<Record<string, Behaviour>> = {
  success: { weight: 28, isExecuted: true, act: succeed },
  slowSuccess: {
    weight: 10,
    isExecuted: true,
    act: async (message, response, random) => {
      await sleep(50 + 500 * random());
      await succeed(message, response, random);
    },
  },
  silence: { weight: 5, isExecuted: true, act: stall },
  reset: { weight: 7, isExecuted: true, act: reset },
  end: { weight: 3, isExecuted: true, act: ({ socket }) => void socket.end() },
  noHttp: { weight: 2, isExecuted: true, act: ({ socket }) => void socket.end('SSH-2.0-OpenSSH\r\n') },
  brokenSuccess: { weight: 4, isExecuted: true, act: breakOff(200) },
  gatewayError: { weight: 2, isExecuted: true, act: respond(502) },
  gatewayTimeout: { weight: 2, isExecuted: true, act: respond(504) },
  silenceUnread: { weight: 2, isExecuted: false, act: stall },
  resetUnread: { weight: 5, isExecuted: false, act: reset },
  tooMany: { weight: 14, isExecuted: false, act: respond(429, { 'retry-after-ms': '5' }) },
  tooManyUnstated: { weight: 1, isExecuted: false, act: respond(429) },
  brokenTooMany: { weight: 3, isExecuted: false, act: breakOff(429) },
  unauthorized: { weight: 8, isExecuted: false, act: respond(401) },
  brokenUnauthorized: { weight: 2, isExecuted: false, act: breakOff(401) },
  unavailable: { weight: 3, isExecuted: false, act: respond(503) },
  unavailableForAWhile: { weight: 1, isExecuted: false, act: respond(503, { 'retry-after': '1' }) },
};
const TOTAL_WEIGHT = Object.values(BEHAVIOURS).reduce((sum, { weight }) => sum + weight, 0);

export interface FaultyUpstream extends AsyncDisposable {
  readonly url: string;
  /** How often each behaviour was chosen. */
  readonly acted: Readonly<Record<string, number>>;
  /** Refuses new connections for a while; open ones are not affected. */
  refuseConnections(forMs: number): Promise<void>;
}

/** @param onExecuted called before the upstream acts on a call that it carries out */
export async function startFaultyUpstream(
  random: Random,
  onExecuted: (id: string, bodySha256: string) => void,
): Promise<FaultyUpstream> {
  const acted: Record<string, number> = {};
  const server = createServer((message, response) => {
    const [name, behaviour] = choose(random);
    acted[name] = (acted[name] ?? 0) + 1;
    // A client that breaks its request off: it is not carried out.
    serve(message, response, behaviour, random, onExecuted).catch(() => message.destroy());
  });
  const port = await freePort();
  const listen = (): Promise<unknown> => once(server.listen(port, '127.0.0.1'), 'listening');
  await listen();
  return {
    url: `http://127.0.0.1:${String(port)}`,
    acted,
    refuseConnections: async (forMs) => {
      // http.Server's own close would end idle connections as well.
      net.Server.prototype.close.call(server);
      await sleep(forMs);
      await listen();
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

async function serve(
  message: IncomingMessage,
  response: ServerResponse,
  { isExecuted, act }: Behaviour,
  random: Random,
  onExecuted: (id: string, bodySha256: string) => void,
): Promise<void> {
  if (isExecuted) {
    const hash = createHash('sha256');
    for await (const chunk of message) hash.update(chunk as Buffer);
    onExecuted(String(message.headers['x-request-id']), hash.digest('hex'));
  }
  await act(message, response, random);
}

function choose(random: Random): [string, Behaviour] {
  let left = random() * TOTAL_WEIGHT;
  for (const [name, behaviour] of Object.entries(BEHAVIOURS)) {
    left -= behaviour.weight;
    if (left < 0) return [name, behaviour];
  }
  throw new Error('a random number of 1 or more');
}
