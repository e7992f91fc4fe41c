/**
 * One connection to a Redis or Valkey server, over the official client. The client's own reconnecting and its queue are off:
 * they would delay commands, while this process must be able to go on without Redis. The handshake has a time limit here; a
 * missing reply is up to the caller, and reconnecting to reconnecting-connection.ts.
 */
import type { Clock } from '../../platform/clock.ts';
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
  /**
   * Sends one command and resolves with its reply, however late.
   * @throws RedisFault when the server refused the command or the connection ended
   */
  send(command: readonly string[]): Promise<unknown>;
  /**
   * Receives the messages of a channel. From then on the connection cannot send.
   * @throws RedisFault when the server does not permit it or the connection ended
   */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>;
  /** Resolves with the fault when the connection was lost; never after `destroy`. */
  readonly ended: Promise<RedisFault>;
  /** Closes it at once; commands in flight are rejected. */
  destroy(): void;
}

/**
 * Opens a connection and sends a PING: a server that hangs still accepts connections.
 * @throws RedisFault
 */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { promise: ended, resolve: end } = Promise.withResolvers<RedisFault>();
  const client = await createClient(options);
  // An error event without a listener would end the process.
  client.on('error', (error: unknown) => end(toRedisFault(error)));
  const late = new AbortController();
  const cancel = options.clock.after(options.timeoutMs, () => {
    late.abort();
    client.destroy();
  });
  try {
    await client.connect();
    await client.sendCommand(['PING']);
  } catch (error) {
    client.destroy();
    throw late.signal.aborted ? new RedisFault('could not be reached in time') : toRedisFault(error);
  } finally {
    cancel();
  }
  return {
    send: (command) =>
      client.sendCommand(command).catch((error: unknown) => {
        throw toRedisFault(error);
      }),
    subscribe: (channel, onMessage) =>
      client.subscribe(channel, onMessage).catch((error: unknown) => {
        throw toRedisFault(error);
      }),
    ended,
    destroy: () => client.destroy(),
  };
}

/** Loads the client on demand: a process without a fleet does not pay for it. */
async function createClient({ url, caFile, timeoutMs }: RedisConnectionOptions) {
  const redis = await import('@redis/client');
  const { socket, ...server } = redis.RedisClient.parseURL(url);
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
      connectTimeout: timeoutMs,
      reconnectStrategy: false,
    },
  });
}
