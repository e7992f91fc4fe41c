/**
 * From a name to a connection: addresses as every connection of the process gets them (getaddrinfo), and a TCP connection to each,
 * so that one of several that does not answer is seen. What is spoken over it is secure.ts's.
 */
import { lookup } from 'node:dns/promises';
import { connect, isIP, isIPv6 } from 'node:net';
import type { Socket } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import { isLoopbackHost } from '../../platform/loopback.ts';
import { errorCodeOf } from './step-runner.ts';
import type { StepResult } from './step-runner.ts';

export interface ConnectTarget {
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Which setting names it, for people. */
  readonly setting: string;
  /** For each of the two steps, milliseconds. */
  readonly timeoutMs: number;
}

type Timers = Pick<Clock, 'now' | 'after'>;

/** Of a name with many addresses the first few tell enough. */
const MAX_ADDRESSES = 8;

/** The addresses of a name, in the order in which they are tried. */
export async function resolveName(place: ConnectTarget, clock: Timers): Promise<StepResult<readonly string[]>> {
  const { host, setting, timeoutMs } = place;
  if (isIP(host) !== 0) return { outcome: 'ok', detail: `${host} is an address, no name`, value: [host] };
  try {
    const found = await lookUpWithTimeout(host, timeoutMs, clock);
    if (found !== undefined) return { outcome: 'ok', detail: `${host} is ${found.join(', ')}`, value: found };
    const late = `the name server has not answered for ${host} within ${timeoutMs} ms`;
    return { outcome: 'fail', detail: late, advice: NAME_SERVER_ADVICE };
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'EAI_AGAIN')
      return { outcome: 'fail', detail: `${host} cannot be resolved now (${code})`, advice: NAME_SERVER_ADVICE };
    const advice = `check the name in ${setting}; a name that only the partner's network knows needs its name server`;
    return { outcome: 'fail', detail: `the name ${host} does not resolve (${code})`, advice };
  }
}

const NAME_SERVER_ADVICE =
  'see whether the name server of this machine or pod can be reached (/etc/resolv.conf, network policy)';

/** Undefined when it takes too long: a lookup cannot be ended. */
async function lookUpWithTimeout(host: string, timeoutMs: number, clock: Timers): Promise<string[] | undefined> {
  const late = Promise.withResolvers<undefined>();
  const cancel = clock.after(timeoutMs, () => late.resolve(undefined));
  try {
    const found = await Promise.race([lookup(host, { all: true }), late.promise]);
    return found && [...new Set(found.map(({ address }) => address))];
  } finally {
    cancel();
  }
}

type ConnectAttempt = { readonly address: string; readonly ms: number } & (
  { readonly socket: Socket } | { readonly code: string }
);

/** Connects to each address; the value is a connection to the first that took one, and the caller's to end. */
export async function connectToEach(
  addresses: readonly string[],
  place: ConnectTarget,
  clock: Timers,
  signal: AbortSignal,
): Promise<StepResult<Socket>> {
  const tried = addresses.slice(0, MAX_ADDRESSES);
  const tries = await Promise.all(tried.map((address) => connectTo(address, place, clock, signal)));
  const [first, ...others] = tries.flatMap((one) => ('socket' in one ? [one.socket] : []));
  for (const socket of others) socket.destroy();
  const detail = tries.map((one) => describeAttempt(one, place)).join('; ');
  const faults = tries.flatMap((one) => ('code' in one ? [one.code] : []));
  if (first === undefined) return { outcome: 'fail', detail, advice: adviseUnreachable(faults[0] ?? '', place) };
  // Without IPv6 here its addresses are passed over at once, and of localhost often one family alone is served.
  const isOdd = faults.some((code) => !NO_ROUTE_CODES.has(code)) && !isLoopbackHost(place.host);
  if (!isOdd) return { outcome: 'ok', detail, value: first };
  const advice = `tell whoever runs ${place.host} that not each of its addresses answers; connections go to the others`;
  return { outcome: 'warn', detail, advice, value: first };
}

function connectTo(
  address: string,
  { port, timeoutMs }: ConnectTarget,
  clock: Timers,
  signal: AbortSignal,
): Promise<ConnectAttempt> {
  const startedAt = clock.now();
  const socket = connect({ host: address, port });
  return new Promise((resolve) => {
    const end = (code: string): void => {
      cancel();
      signal.removeEventListener('abort', leave);
      socket.destroy();
      resolve({ address, ms: clock.now() - startedAt, code });
    };
    const leave = (): void => end('ABORT_ERR');
    const cancel = clock.after(timeoutMs, () => end('ETIMEDOUT'));
    // It stays: a connection that breaks later would otherwise end the process.
    socket.on('error', (error) => end(errorCodeOf(error)));
    socket.once('connect', () => {
      cancel();
      signal.removeEventListener('abort', leave);
      resolve({ address, ms: clock.now() - startedAt, socket });
    });
    if (signal.aborted) leave();
    signal.addEventListener('abort', leave, { once: true });
  });
}

const NO_ROUTE_CODES: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'EADDRNOTAVAIL']);

const ERROR_TEXTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ECONNRESET: 'cut the connection',
  ETIMEDOUT: 'did not answer',
  ABORT_ERR: 'was not waited for',
};

function describeAttempt(one: ConnectAttempt, { port }: ConnectTarget): string {
  const where = `${isIPv6(one.address) ? `[${one.address}]` : one.address}:${port}`;
  if ('socket' in one) return `${where} in ${one.ms.toFixed(1)} ms`;
  const words = NO_ROUTE_CODES.has(one.code)
    ? 'has no route from here'
    : (ERROR_TEXTS[one.code] ?? 'cannot be reached');
  return `${where} ${words} (${one.code}) after ${Math.round(one.ms)} ms`;
}

function adviseUnreachable(code: string, { host, port, setting }: ConnectTarget): string {
  if (code === 'ECONNREFUSED')
    return `nothing listens there: check host and port in ${setting}, and that the service is up`;
  if (code === 'ECONNRESET') return `something between here and ${host} cuts connections: ask whoever runs the network`;
  const proxy = 'or set egress.proxy (SIDECAR_EGRESS_PROXY) if a proxy is the way out';
  return `ask whoever runs the network to open ${host}:${port} from here (firewall, network policy), ${proxy}`;
}
