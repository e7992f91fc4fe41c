/** An HTTP client that sends bytes exactly as given and reads what comes back, for what no well-behaved client does. */
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { waitUntil } from './until.ts';

export interface RawResponse {
  readonly status: number;
  /** Names in lower case; the last of several wins. */
  readonly headers: Readonly<Record<string, string>>;
  /** Everything received, the head included. */
  readonly bytes: Buffer;
  readonly body: Buffer;
  /** How the connection ended: by the other side's FIN, or torn. */
  readonly end: 'fin' | 'reset';
}

/** libuv before 1.52 (Node.js 22.21 and 24.9 among others) takes a reset that arrives together with data for the end of the connection. */
export const SEES_RESET_BEHIND_DATA = Number(process.versions.uv.split('.')[1]) >= 52;

/** Opens a connection to the host and port of `url`. */
export async function openSocket(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  return socket;
}

/** Waits until connections to `url` are accepted. */
export function waitUntilAccepted(url: string): Promise<void> {
  const isAccepted = async (): Promise<boolean> => {
    try {
      (await openSocket(url)).destroy();
      return true;
    } catch {
      return false;
    }
  };
  return waitUntil(isAccepted, `connections to ${url} are accepted`);
}

/** Waits until connections to `url` are refused. */
export function waitUntilRefused(url: string): Promise<void> {
  const isRefused = async (): Promise<boolean> => {
    try {
      (await openSocket(url)).destroy();
      return false;
    } catch (error) {
      // A connection that is closed in the moment it is made does not count.
      return (error as NodeJS.ErrnoException).code === 'ECONNREFUSED';
    }
  };
  return waitUntil(isRefused, `new connections to ${url} are refused`);
}

/** Reads until the other side ends the connection. Send `Connection: close`, or the wait is long. */
export async function readToEnd(socket: Socket): Promise<RawResponse> {
  const chunks: Buffer[] = [];
  const end = await new Promise<'fin' | 'reset'>((resolve) => {
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    socket.once('end', () => resolve('fin'));
    socket.once('error', () => resolve('reset'));
    socket.once('close', () => resolve('reset'));
  });
  socket.destroy();
  return { ...parse(Buffer.concat(chunks)), end };
}

/** Sends `bytes` on a connection of its own and reads to the end of it. */
export async function sendRaw(url: string, bytes: string | Buffer): Promise<RawResponse> {
  const socket = await openSocket(url);
  const response = readToEnd(socket);
  socket.write(bytes);
  return response;
}

function parse(bytes: Buffer): Omit<RawResponse, 'end'> {
  const headEnd = bytes.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = bytes.subarray(0, Math.max(headEnd, 0)).toString('latin1').split('\r\n');
  const fields = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    status: Number(statusLine.split(' ')[1] ?? 0),
    headers: Object.fromEntries(fields),
    bytes,
    body: headEnd < 0 ? Buffer.alloc(0) : bytes.subarray(headEnd + 4),
  };
}
