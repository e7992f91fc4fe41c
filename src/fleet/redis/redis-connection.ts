/**
 * One connection to a Redis or Valkey server, over the official client. The client's own reconnecting and its queue are off:
 * they would delay commands, while this process must be able to go on without Redis. The handshake has a time limit here; a
 * missing reply is up to the caller, and reconnecting to reconnecting-connection.ts.
 */
import { once } from 'node:events';
import { connect, isIPv6, type LookupFunction, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { waitAtMost, type Clock } from '../../platform/clock.ts';
import { openConnection } from '../../platform/open-connection.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { toRedisFault, RedisFault } from './redis-fault.ts';

export interface RedisConnectionOptions {
  /** `redis:`, `rediss:` or `unix:`. May hold a password: never shown. */
  readonly url: string;
  /** PEM certificates trusted for `rediss:` instead of Node's and the system's roots; read at every call. */
  readonly caFile: string | undefined;
  /** From the start to the reply to a PING, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
}

export interface RedisConnection {
  /** Resolves with the reply, however late. @throws RedisFault when the server rejected the command or the connection ended */
  send(command: readonly string[]): Promise<unknown>;
  /** From then on the connection cannot send. @throws RedisFault when the server does not permit it or the connection ended */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>;
  /** Resolves with the fault when the connection was lost; never after `destroy`. */
  readonly ended: Promise<RedisFault>;
  /** Closes it at once; commands in flight are rejected. */
  destroy(): void;
}

/** Per connection. The reply to a PING that has not come by then would not be in time either. */
const DIAGNOSIS_TIMEOUT_MS = 400;
/** Codes of connections that were opened and did not last: the server may speak another protocol. */
const BROKEN_OFF = /^(?:ECONNRESET|EPIPE|ERR_SSL_.*)$/;

/** Also sends a PING: a server that hangs still accepts connections. @throws RedisFault */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { promise: ended, resolve: end } = Promise.withResolvers<RedisFault>();
  const late = new AbortController();
  const client = await createClient(options, late.signal);
  // An error event without a listener would end the process.
  let firstError: unknown;
  client.on('error', (error: unknown) => {
    firstError ??= error;
    end(toRedisFault(error));
  });
  const cancel = options.clock.after(options.timeoutMs, () => {
    late.abort();
    client.destroy();
  });
  try {
    await client.connect();
    await client.sendCommand(['PING']);
  } catch (error) {
    cancel();
    client.destroy();
    // The command may only have found the connection closed, while the first error says why.
    throw await explainFailure(late.signal.aborted ? undefined : (firstError ?? error), options);
  } finally {
    cancel();
  }
  return {
    send: (command) =>
      client.sendCommand(command).catch((error: unknown) => {
        throw toRedisFault(error, command[0]);
      }),
    subscribe: (channel, onMessage) =>
      client.subscribe(channel, onMessage).catch((error: unknown) => {
        throw toRedisFault(error, 'SUBSCRIBE');
      }),
    ended,
    destroy: () => client.destroy(),
  };
}

/** @param error undefined for a time-out */
async function explainFailure(error: unknown, { url, clock }: RedisConnectionOptions): Promise<RedisFault> {
  const fault = error === undefined ? new RedisFault('could not be reached in time') : toRedisFault(error);
  const hasKnownCause = fault.replyCode !== undefined || (fault.code !== undefined && !BROKEN_OFF.test(fault.code));
  const cause = hasKnownCause ? undefined : await diagnoseServer({ url, timeoutMs: DIAGNOSIS_TIMEOUT_MS, clock });
  return cause === undefined ? fault : new RedisFault(cause);
}

/** Loads the client on demand: a process without a fleet does not pay for it. */
async function createClient({ url, caFile, timeoutMs, clock }: RedisConnectionOptions, signal: AbortSignal) {
  const redis = await import('@redis/client');
  const { socket, ...server } = redis.RedisClient.parseURL(url);
  const port = 'port' in socket ? (socket.port ?? DEFAULT_PORT) : DEFAULT_PORT;
  // The client opens its own connection: it gets the address that accepts one.
  const lookup: LookupFunction = (host, { all }, callback) => {
    openConnection({ host, port, signal, clock }).then(
      (connection) => {
        const { remoteAddress: address = '' } = connection;
        connection.destroy();
        const family = isIPv6(address) ? 6 : 4;
        if (all === true) callback(null, [{ address, family }]);
        else callback(null, address, family);
      },
      (fault: unknown) => callback(fault as Error, []),
    );
  };
  return redis.createClient({
    ...server,
    // Needs no handshake command, so that old servers and proxies accept it.
    RESP: 2,
    disableClientInfo: true,
    maintNotifications: 'disabled',
    disableOfflineQueue: true,
    socket: {
      ...socket,
      ...(socket.tls && { secureContext: loadTlsContext(caFile), rejectUnauthorized: true }),
      lookup,
      connectTimeout: timeoutMs,
      reconnectStrategy: false,
    },
  });
}

const DEFAULT_PORT = 6379;
/** Enough for the beginning of a reply. */
const MAX_BYTES = 5;

/**
 * Why a server does not complete the handshake of a Redis client: it expects TLS, does not speak TLS, or is another kind of server. Sends a
 * PING on a connection of its own, and never a password. What it receives is matched and never quoted. Never rejects.
 * @param timeoutMs for each of at most two connections
 * @returns a clause that follows the word "Redis" and names the setting; undefined when nothing was found
 */
async function diagnoseServer({
  url,
  timeoutMs,
  clock,
}: Omit<RedisConnectionOptions, 'caFile'>): Promise<string | undefined> {
  if (/^unix:/i.test(url)) return undefined;
  const { hostname, port, protocol } = new URL(url);
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || DEFAULT_PORT) };
  const isTls = protocol === 'rediss:';
  const first = await readFirstBytes(connect(address), timeoutMs, clock);
  if (first === undefined) return undefined;
  if (first.startsWith('HTTP/')) return 'is an HTTP server: check host and port in fleet.redisUrl';
  if (/^[+-]/.test(first)) return isTls ? 'does not speak TLS on this port: use redis: in fleet.redisUrl' : undefined;
  if (isTls) return undefined;
  if (first !== '') return 'does not speak the Redis protocol: check host and port in fleet.redisUrl';
  const isSecured = await completesTlsHandshake(address, timeoutMs, clock);
  return isSecured ? 'expects TLS on this port: use rediss: in fleet.redisUrl' : undefined;
}

/** Sends a PING. Empty when the server closes the connection, undefined when there is no reply in time. */
function readFirstBytes(socket: Socket, timeoutMs: number, clock: Pick<Clock, 'after'>): Promise<string | undefined> {
  return new Promise((resolve) => {
    let received = '';
    const finish = (result: string | undefined): void => {
      cancel();
      socket.destroy();
      resolve(result);
    };
    const end = (): void => finish(received);
    const cancel = clock.after(timeoutMs, () => finish(undefined));
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.on('data', (chunk) => {
      received = (received + chunk.toString('latin1')).slice(0, MAX_BYTES);
      if (received.length === MAX_BYTES) end();
    });
    socket.on('error', end);
    socket.on('close', end);
  });
}

async function completesTlsHandshake(
  address: { readonly host: string; readonly port: number },
  timeoutMs: number,
  clock: Pick<Clock, 'after'>,
): Promise<boolean> {
  // Safe, since nothing is sent: whether the certificate is trusted does not matter here.
  const socket = connectTls({ ...address, rejectUnauthorized: false });
  const secured = once(socket, 'secureConnect').then(() => true);
  const closed = once(socket, 'close').then(() => false);
  const isSecured = await waitAtMost(Promise.race([secured, closed]), clock, timeoutMs).catch(() => false);
  socket.on('error', () => undefined).destroy();
  return isSecured === true;
}
