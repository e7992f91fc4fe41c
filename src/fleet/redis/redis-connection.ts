/**
 * One connection to a Redis or Valkey server, over the official client: opened, asked, gone. The client's own reconnecting and
 * its queue are off: they would hold commands back where this process has to go on alone. What the client does not bound, a
 * handshake that never ends, is bounded here; an answer that never comes is the caller's. When to open another is standing-link's.
 */
import type { Clock } from '../../platform/clock.ts';
import { loadTlsContext } from '../../platform/tls.ts';
import { toRedisFault, RedisFault } from './redis-fault.ts';

export interface RedisConnectionOptions {
  /** `redis:`, `rediss:` or `unix:`, with a password or without. Never shown. */
  readonly url: string;
  /** PEM file whose certificates are trusted for `rediss:` instead of Node's and the system's roots; read at every call. */
  readonly caFile: string | undefined;
  /** From the start to the answer to a PING, milliseconds. */
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
   * Hears what is published on a channel. From then on nothing can be sent over this connection.
   * @throws RedisFault when the server does not permit it or the connection ended
   */
  subscribe(channel: string, hear: (message: string) => void): Promise<void>;
  /** Resolves, with the fault, when the connection has ended by itself; never after `destroy`. */
  readonly ended: Promise<RedisFault>;
  /** Ends it at once; commands under way are rejected. */
  destroy(): void;
}

/**
 * Opens a connection and has it answer a PING: a server that hangs still takes connections.
 * @throws RedisFault in words fit for a log
 */
export async function openRedisConnection(options: RedisConnectionOptions): Promise<RedisConnection> {
  const { promise: ended, resolve: end } = Promise.withResolvers<RedisFault>();
  const client = await createClient(options);
  // Without a listener an error event would end the process.
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
    subscribe: (channel, hear) =>
      client.subscribe(channel, hear).catch((error: unknown) => {
        throw toRedisFault(error);
      }),
    ended,
    destroy: () => client.destroy(),
  };
}

/** Loaded here, so that a process without a fleet does not pay for it. */
async function createClient({ url, caFile, timeoutMs }: RedisConnectionOptions) {
  const redis = await import('@redis/client');
  const { socket, ...server } = redis.RedisClient.parseURL(url);
  return redis.createClient({
    ...server,
    // Needs no command of its own, so that an old server or a proxy in between takes it as well.
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
