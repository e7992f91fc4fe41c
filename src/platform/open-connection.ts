/**
 * Opens a TCP connection to a name: its addresses are tried one after the other, 250 ms apart, and none is given up before another one
 * accepts or the time is over (RFC 8305 §5). So an address that does not respond delays the others little, and a far one is reached.
 */
import dns, { type LookupAddress } from 'node:dns';
import { connect, isIP, isIPv6, type Socket } from 'node:net';
import { abortable, systemClock, type Cancel, type Clock } from './clock.ts';
import { ConnectFault, type TriedAddress } from './connection-faults.ts';

/** The addresses in the order of getaddrinfo, at least one. @throws Error with the code of getaddrinfo */
export type LookUpName = (name: string) => Promise<readonly LookupAddress[]>;

/**
 * A look-up occupies a thread until the name server responds, and libuv gives look-ups half of its threads: so all that wait for the same name
 * share one. The result, or the fault, is for them: the next call starts a new look-up.
 */
export function shareLookUps(lookUp: LookUpName): LookUpName {
  const pending = new Map<string, ReturnType<LookUpName>>();
  return (name) => {
    const shared = pending.get(name) ?? lookUp(name).finally(() => pending.delete(name));
    pending.set(name, shared);
    return shared;
  };
}

/** As the connections of Node.js do: only addresses of families that this machine has an address of, except on Windows. */
const HINTS = process.platform === 'win32' ? 0 : dns.ADDRCONFIG;

const lookUpName: LookUpName = shareLookUps(
  (name) =>
    new Promise((resolve, reject) => {
      dns.lookup(name, { all: true, hints: HINTS }, (fault, addresses) => {
        if (fault === null) resolve(addresses);
        else reject(fault);
      });
    }),
);

export interface ConnectionOptions {
  /** Name or address, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Ends the look-up and the attempts; its reason is then the error. */
  readonly signal: AbortSignal;
  /** Gets each address when it is tried, for the fault of a time-out. Default: not needed */
  readonly tried?: TriedAddress[] | undefined;
  /** Default: the system's. */
  readonly clock?: Pick<Clock, 'after'> | undefined;
  /** Default: getaddrinfo, shared by all that wait for the name. */
  readonly lookUp?: LookUpName | undefined;
}

/** As Node.js waits before it tries the next address. */
const ATTEMPT_DELAY_MS = 250;

/** @throws ConnectFault when every address failed; the error of the look-up; the signal's reason */
export async function openConnection(options: ConnectionOptions): Promise<Socket> {
  const { host, port, signal, tried = [], clock = systemClock, lookUp = lookUpName } = options;
  const found = isIP(host) === 0 ? await abortable(lookUp(host), signal) : [{ address: host }];
  const left = alternateFamilies([...new Set(found.map(({ address }) => address))]);
  const opening = new Set<Socket>();
  const { promise: opened, resolve, reject } = Promise.withResolvers<Socket>();
  let cancelDelay: Cancel | undefined;
  const tryNext = (): void => {
    cancelDelay?.();
    const address = left.shift();
    if (address === undefined) {
      if (opening.size === 0) reject(new ConnectFault(host, tried));
      return;
    }
    const attempt: TriedAddress = { address: formatAuthority(address, port), outcome: 'no answer' };
    tried.push(attempt);
    // The buffer that undici gives to its own connections.
    const target = { host: address, port, noDelay: true, highWaterMark: 64 * 1024 };
    const socket = connect(target);
    opening.add(socket);
    const onError = (fault: NodeJS.ErrnoException): void => {
      opening.delete(socket);
      attempt.outcome = fault.code ?? fault.name;
      tryNext();
    };
    socket.once('error', onError).once('connect', () => {
      attempt.outcome = 'connected';
      resolve(socket.off('error', onError));
    });
    cancelDelay = clock.after(ATTEMPT_DELAY_MS, tryNext);
  };
  try {
    tryNext();
    const socket = await abortable(opened, signal);
    opening.delete(socket);
    return socket;
  } finally {
    cancelDelay?.();
    // All that lost, also one that connected in the same turn of the event loop, or when the signal was aborted.
    for (const socket of opening) socket.destroy();
  }
}

/** The family of the first address first, then one of each in turn. */
function alternateFamilies(addresses: readonly string[]): string[] {
  const isOfFirst = (address: string): boolean => isIPv6(address) === isIPv6(addresses[0] ?? '');
  const own = addresses.filter(isOfFirst);
  const others = addresses.filter((address) => !isOfFirst(address));
  return [...own.flatMap((address, at) => [address, ...others.slice(at, at + 1)]), ...others.slice(own.length)];
}

/** Host and port as in a URL. */
export function formatAuthority(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${String(port)}`;
}
