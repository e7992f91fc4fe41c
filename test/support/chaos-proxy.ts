/**
 * A TCP proxy that breaks an exchange at an exact byte of either direction: by a reset, a FIN, silence, or one byte per
 * turn from there on. Offsets count from the first byte of each exchange, also on a connection that carries several.
 */
import { connect, createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';

export const FAULTS = ['reset', 'fin', 'stall', 'drip'] as const;
export type Fault = (typeof FAULTS)[number];
export const DIRECTIONS = ['request', 'response'] as const;
export type Direction = (typeof DIRECTIONS)[number];

export interface FaultPlan {
  readonly direction: Direction;
  /** Bytes that still pass before the fault. */
  readonly offset: number;
  readonly fault: Fault;
}

/** What befalls the exchange that this request head begins; undefined lets it pass. */
export type FaultPlanner = (head: string) => FaultPlan | undefined;

export interface ChaosProxy extends AsyncDisposable {
  readonly url: string;
  /** Where connections lead; set it before the first one. */
  target: string;
  /** Bytes of the exchange that began last. */
  readonly lastExchangeBytes: Readonly<Record<Direction, number>>;
}

export async function startChaosProxy(planFor: FaultPlanner): Promise<ChaosProxy> {
  const links = new Set<ProxiedConnection>();
  let last: ProxiedConnection | undefined;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const { hostname, port } = new URL(proxy.target);
    const upstream = connect({ host: hostname, port: Number(port), allowHalfOpen: true, noDelay: true });
    const link = new ProxiedConnection(client, upstream, planFor);
    last = link;
    links.add(link);
    client.once('close', () => links.delete(link));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const proxy: ChaosProxy = {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    target: '',
    get lastExchangeBytes() {
      return { request: last?.request.receivedBytes ?? 0, response: last?.response.receivedBytes ?? 0 };
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve));
      for (const link of links) link.destroy();
      await closed;
    },
  };
  return proxy;
}

/** Two connections and what passes between them. */
class ProxiedConnection {
  readonly request: ForwardedDirection;
  readonly response: ForwardedDirection;
  readonly #sockets: readonly [Socket, Socket];
  readonly #planFor: FaultPlanner;
  #head: Buffer | undefined = Buffer.alloc(0);

  constructor(client: Socket, upstream: Socket, planFor: FaultPlanner) {
    this.#sockets = [client, upstream];
    this.#planFor = planFor;
    const reset = (): void => {
      for (const socket of this.#sockets) socket.resetAndDestroy();
    };
    this.request = new ForwardedDirection(client, upstream, reset);
    this.response = new ForwardedDirection(upstream, client, reset);
    client.on('data', (chunk: Buffer) => {
      this.#takeRequest(chunk);
    });
    upstream.on('data', (chunk: Buffer) => {
      this.response.forward(chunk);
    });
    for (const socket of this.#sockets) {
      const other = socket === client ? upstream : client;
      socket.on('error', () => other.resetAndDestroy());
      // What drips is still on its way; everything else ends with either side.
      socket.on('close', () => {
        if (!this.request.isDripping && !this.response.isDripping) other.destroySoon();
      });
    }
  }

  destroy(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  /** Delays a request until its head names its plan. */
  #takeRequest(chunk: Buffer): void {
    if (this.#head === undefined && this.response.receivedBytes > 0) this.#head = Buffer.alloc(0);
    if (this.#head === undefined) {
      this.request.forward(chunk);
      return;
    }
    this.#head = Buffer.concat([this.#head, chunk]);
    if (!this.#head.includes('\r\n\r\n')) return;
    const begun = this.#head;
    this.#head = undefined;
    const plan = this.#planFor(begun.toString('latin1'));
    this.request.beginExchange(plan?.direction === 'request' ? plan : undefined);
    this.response.beginExchange(plan?.direction === 'response' ? plan : undefined);
    this.request.forward(begun);
  }
}

/** One direction of a link. */
class ForwardedDirection {
  /** Bytes of this exchange that have come in so far. */
  receivedBytes = 0;
  readonly #from: Socket;
  readonly #to: Socket;
  readonly #reset: () => void;
  #plan: FaultPlan | undefined;
  #state: 'flowing' | 'dripping' | 'dead' = 'flowing';
  #drops: Buffer = Buffer.alloc(0);
  #hasEnded = false;

  constructor(from: Socket, to: Socket, reset: () => void) {
    this.#from = from;
    this.#to = to;
    this.#reset = reset;
    from.on('end', () => {
      this.#end();
    });
  }

  get isDripping(): boolean {
    return this.#drops.length > 0;
  }

  beginExchange(plan: FaultPlan | undefined): void {
    this.receivedBytes = 0;
    this.#plan = plan;
  }

  forward(chunk: Buffer): void {
    const before = this.receivedBytes;
    this.receivedBytes += chunk.length;
    if (this.#state === 'dead') return;
    if (this.#state === 'dripping') {
      this.#drops = Buffer.concat([this.#drops, chunk]);
      return;
    }
    if (this.#plan === undefined || this.receivedBytes < this.#plan.offset) {
      this.#to.write(chunk);
      return;
    }
    const { fault, offset } = this.#plan;
    this.#plan = undefined;
    if (offset > before) this.#to.write(chunk.subarray(0, offset - before));
    this.#strike(fault, chunk.subarray(offset - before));
  }

  #strike(fault: Fault, rest: Buffer): void {
    this.#state = fault === 'drip' ? 'dripping' : 'dead';
    if (fault === 'fin') this.#to.end();
    // What was written goes out first, and its receiver has a turn to read it.
    if (fault === 'reset') this.#to.write('', () => setImmediate(this.#reset));
    if (fault !== 'drip') return;
    this.#drops = rest;
    this.#drip();
  }

  #drip(): void {
    if (this.#to.destroyed) {
      this.#drops = Buffer.alloc(0);
      this.#from.destroy();
    } else if (this.#drops.length === 0 && this.#plan === undefined) {
      this.#state = 'flowing';
      if (this.#hasEnded) this.#to.end();
    } else {
      this.#to.write(this.#drops.subarray(0, 1));
      this.#drops = this.#drops.subarray(1);
      setImmediate(() => {
        this.#drip();
      });
    }
  }

  #end(): void {
    this.#hasEnded = true;
    if (this.#state === 'flowing') this.#to.end();
    // After a stall it would never be noticed.
    if (this.#state === 'dead') {
      this.#from.destroy();
      this.#to.destroy();
    }
  }
}
