/**
 * Resolves a name with getaddrinfo, as every connection of the process does, and connects to each address, so that a single
 * unreachable address is found.
 */
import { connect, isIP, type Socket } from 'node:net';
import type { Clock } from '../../platform/clock.ts';
import { isLoopbackHost } from '../../platform/loopback.ts';
import { lookUpName } from '../../platform/name-lookup.ts';
import { formatAuthority } from '../../platform/open-connection.ts';
import { errorCodeOf } from '../../platform/connection-faults.ts';
import type { StepResult } from './step-runner.ts';

export interface ConnectTarget {
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** The setting that names the host, for advice. */
  readonly setting: string;
  /** For each of the two steps. */
  readonly timeoutMs: number;
}

type Timers = Pick<Clock, 'now' | 'after'>;

const MAX_ADDRESSES = 8;

/** The addresses of a name, in the order in which they are tried. */
export async function resolveName(target: ConnectTarget, clock: Timers): Promise<StepResult<readonly string[]>> {
  const { host, setting, timeoutMs } = target;
  if (isIP(host) !== 0) return { outcome: 'ok', detail: `${host} is an address`, value: [host] };
  try {
    const found = await lookUpWithTimeout(host, timeoutMs, clock);
    if (found !== undefined) return { outcome: 'ok', detail: `${host} is ${found.join(', ')}`, value: found };
    const detail = `the name server did not respond for ${host} within ${timeoutMs} ms`;
    return { outcome: 'fail', detail, advice: NAME_SERVER_ADVICE };
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'EAI_AGAIN')
      return { outcome: 'fail', detail: `${host} cannot be resolved now (${code})`, advice: NAME_SERVER_ADVICE };
    const advice = `check the name in ${setting}; a name that only the partner's network knows needs its name server`;
    return { outcome: 'fail', detail: `the name ${host} does not resolve (${code})`, advice };
  }
}

const NAME_SERVER_ADVICE =
  'check that the name server of this machine or pod is reachable (/etc/resolv.conf, network policy)';

/** Undefined after the timeout; a lookup cannot be cancelled. */
async function lookUpWithTimeout(host: string, timeoutMs: number, clock: Timers): Promise<string[] | undefined> {
  const late = Promise.withResolvers<undefined>();
  const cancel = clock.after(timeoutMs, () => late.resolve(undefined));
  try {
    const found = await Promise.race([lookUpName(host), late.promise]);
    return found && [...new Set(found.map(({ address }) => address))];
  } finally {
    cancel();
  }
}

type ConnectAttempt = { readonly address: string; readonly ms: number } & (
  | { readonly socket: Socket }
  | { readonly code: string }
);

/** Connects to each address. The value is the connection to the first that accepted; the caller closes it. */
export async function connectToEach(
  addresses: readonly string[],
  target: ConnectTarget,
  clock: Timers,
  signal: AbortSignal,
): Promise<StepResult<Socket>> {
  const tried = addresses.slice(0, MAX_ADDRESSES);
  const tries = await Promise.all(tried.map((address) => connectTo(address, target, clock, signal)));
  const [first, ...others] = tries.flatMap((attempt) => ('socket' in attempt ? [attempt.socket] : []));
  for (const socket of others) socket.destroy();
  const detail = tries.map((attempt) => describeAttempt(attempt, target)).join('; ');
  const faults = tries.flatMap((attempt) => ('code' in attempt ? [attempt.code] : []));
  if (first === undefined) return { outcome: 'fail', detail, advice: adviseUnreachable(faults[0] ?? '', target) };
  // Missing IPv6 is no fault, and localhost often serves one address family only.
  const isOdd = faults.some((code) => !NO_ROUTE_CODES.has(code)) && !isLoopbackHost(target.host);
  if (!isOdd) return { outcome: 'ok', detail, value: first };
  const advice = `tell the operator of ${target.host} that some of its addresses do not respond; connections use the others`;
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
    // Stays attached: an error without a listener would end the process.
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
  ETIMEDOUT: 'did not respond',
  ABORT_ERR: 'was interrupted',
};

function describeAttempt(attempt: ConnectAttempt, { port }: ConnectTarget): string {
  const where = formatAuthority(attempt.address, port);
  if ('socket' in attempt) return `${where} in ${attempt.ms.toFixed(1)} ms`;
  const outcome = NO_ROUTE_CODES.has(attempt.code)
    ? 'has no route from here'
    : (ERROR_TEXTS[attempt.code] ?? 'cannot be reached');
  return `${where} ${outcome} (${attempt.code}) after ${Math.round(attempt.ms)} ms`;
}

function adviseUnreachable(code: string, { host, port, setting }: ConnectTarget): string {
  if (code === 'ECONNREFUSED')
    return `nothing listens there: check host and port in ${setting}, and that the service runs`;
  if (code === 'ECONNRESET')
    return `something between here and ${host} cuts connections: ask the operator of the network`;
  const proxy = 'or set egress.proxy (SIDECAR_EGRESS_PROXY) if a proxy is required';
  return `ask the operator of the network to open ${host}:${port} from here (firewall, network policy), ${proxy}`;
}
