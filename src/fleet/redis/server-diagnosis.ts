/**
 * Finds out why a server does not complete the handshake of a Redis client: it expects TLS, does not speak TLS, or is another kind
 * of server. Sends a PING on a connection of its own, and never a password. What it receives is matched and never quoted.
 */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { Clock } from '../../platform/clock.ts';

export interface DiagnosisOptions {
  /** `redis:`, `rediss:` or `unix:`. */
  readonly url: string;
  /** For each of at most two connections, milliseconds. */
  readonly timeoutMs: number;
  readonly clock: Pick<Clock, 'after'>;
}

const DEFAULT_PORT = 6379;
/** Enough for the beginning of a reply. */
const MAX_BYTES = 5;

/** What is wrong, as a clause that follows the word "Redis" and names the setting; undefined when nothing was found. Never rejects. */
export async function diagnoseServer({ url, timeoutMs, clock }: DiagnosisOptions): Promise<string | undefined> {
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

function completesTlsHandshake(
  address: { readonly host: string; readonly port: number },
  timeoutMs: number,
  clock: Pick<Clock, 'after'>,
): Promise<boolean> {
  return new Promise((resolve) => {
    // Safe, since nothing is sent: whether the certificate is trusted does not matter here.
    const socket = connectTls({ ...address, rejectUnauthorized: false });
    const end = (isSecured: boolean): void => {
      cancel();
      socket.destroy();
      resolve(isSecured);
    };
    const cancel = clock.after(timeoutMs, () => end(false));
    socket.once('secureConnect', () => end(true));
    socket.on('error', () => end(false));
    socket.on('close', () => end(false));
  });
}
