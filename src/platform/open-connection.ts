/**
 * Opens a TCP connection to a name: its addresses are tried one after the other, 250 ms apart, and none is given up before another one
 * accepts or the time is over (RFC 8305 §5). So an address that does not respond delays the others little, and a far one is reached.
 */
import { connect, isIP, isIPv6, type Socket } from 'node:net';
import { abortable, systemClock, type Cancel, type Clock } from './clock.ts';
import { ConnectFault, type TriedAddress } from './connection-faults.ts';
import { lookUpName, type LookUpName } from './name-lookup.ts';

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
  const { host, signal, lookUp = lookUpName } = options;
  const found = isIP(host) === 0 ? await abortable(lookUp(host), signal) : [{ address: host }];
  const addresses = alternateFamilies([...new Set(found.map(({ address }) => address))]);
  return new AddressRace(addresses, options).run();
}

class AddressRace {
  readonly #addresses: readonly string[];
  readonly #options: ConnectionOptions;
  readonly #tried: TriedAddress[];
  readonly #opening = new Set<Socket>();
  readonly #result = Promise.withResolvers<Socket>();
  #next = 0;
  #cancelDelay: Cancel | undefined;

  constructor(addresses: readonly string[], options: ConnectionOptions) {
    this.#addresses = addresses;
    this.#options = options;
    this.#tried = options.tried ?? [];
  }

  async run(): Promise<Socket> {
    try {
      this.#tryNext();
      const socket = await abortable(this.#result.promise, this.#options.signal);
      this.#opening.delete(socket);
      return socket;
    } finally {
      this.#cancelDelay?.();
      // All that lost, also one that connected in the same turn of the event loop, or when the signal was aborted.
      for (const socket of this.#opening) socket.destroy();
    }
  }

  #tryNext(): void {
    this.#cancelDelay?.();
    const { host, port, clock = systemClock } = this.#options;
    const address = this.#addresses[this.#next++];
    if (address === undefined) {
      if (this.#opening.size === 0) this.#result.reject(new ConnectFault(host, this.#tried));
      return;
    }
    const attempt: TriedAddress = { address: formatAuthority(address, port), outcome: 'no answer' };
    this.#tried.push(attempt);
    this.#connect(address, attempt);
    this.#cancelDelay = clock.after(ATTEMPT_DELAY_MS, () => this.#tryNext());
  }

  #connect(address: string, attempt: TriedAddress): void {
    // The buffer that undici gives to its own connections.
    const options = { host: address, port: this.#options.port, noDelay: true, highWaterMark: 64 * 1024 };
    const socket = connect(options);
    this.#opening.add(socket);
    const onError = (fault: NodeJS.ErrnoException): void => {
      this.#opening.delete(socket);
      attempt.outcome = fault.code ?? fault.name;
      this.#tryNext();
    };
    socket.once('error', onError);
    socket.once('connect', () => {
      socket.off('error', onError);
      attempt.outcome = 'connected';
      this.#cancelDelay?.();
      this.#result.resolve(socket);
    });
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
