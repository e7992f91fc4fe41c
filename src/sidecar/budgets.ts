/**
 * How much the sidecar may hold at once, from what the machine gives and what the configuration asks for. Pure: machine.ts reads the machine,
 * the listener and the admin port keep to the result. The costs are measured (docs/adr/0021).
 */
import { formatSettingName } from '../config/load/problems.ts';
import type { Config } from '../config/config.ts';
import { listen as settings } from '../config/schema/schema-inbound.ts';

/** What a process finds at its start. */
export interface Machine {
  /** How many file descriptors it may have; undefined where that is not known. */
  readonly descriptorLimit: number | undefined;
  /** Descriptors that are open already. */
  readonly openDescriptors: number;
  /** Of V8's old generation. */
  readonly heapLimitBytes: number;
  /** Of the control group, or what the machine has. */
  readonly memoryLimitBytes: number;
}

/** What the configuration asks for. */
export interface Demand {
  /** `listen.maxConnections`. */
  readonly connections: number;
  /** That is not its default. */
  readonly isConnectionLimitSet: boolean;
  /** Requests that may wait or be in flight, of all throttles together. */
  readonly requests: number;
  /** Connections to the upstreams, at most. */
  readonly upstreamConnections: number;
  /** Descriptors for all else that the configuration names: listening sockets, token endpoints, Redis, traces. */
  readonly otherDescriptors: number;
  readonly replayTotalBytes: number;
}

export interface Budgets {
  /** Client connections that are served at once. */
  readonly connections: number;
  /** Connections beyond those that may stay open for a moment, to read why they are refused. */
  readonly refusedConnections: number;
  readonly adminConnections: number;
  /** Requests that may be open at once, waiting ones included; from the machine alone. */
  readonly requests: number;
  readonly replayTotalBytes: number;
}

export type BudgetDecision =
  | { readonly kind: 'fits'; readonly budgets: Budgets; readonly warnings: readonly string[] }
  /** Not even one client could be served. */
  | { readonly kind: 'too-small'; readonly problem: string };

const KIB = 1024;
const MIB = 1024 * KIB;

/** Files that are read or written, look-ups of names, and what Node.js opens later. */
const SPARE_DESCRIPTORS = 6;
/** Shared by what follows: clients, upstreams, the admin port, connections that are refused. */
const MIN_SHARED_DESCRIPTORS = 8;
const MAX_REFUSED = 4096;
const MAX_ADMIN = 64;

/** What something costs, resident and in V8's heap, and its part of what there is. */
interface Cost {
  readonly bytes: number;
  readonly part: number;
}

/** Measured: docs/adr/0021. */
const MEMORY = {
  /** Under load, with nothing held. */
  baseBytes: 95 * MIB,
  /** Node.js reads 64 KiB of an unread body. */
  request: { bytes: 84 * KIB, part: 0.78 },
  /** With its parser, and a request head of 16 KiB that does not end. */
  connection: { bytes: 34 * KIB, part: 0.1 },
  refused: { bytes: 6 * KIB, part: 0.12 },
};
const HEAP = {
  baseBytes: 20 * MIB,
  request: { bytes: 28 * KIB, part: 0.55 },
  connection: { bytes: 21 * KIB, part: 0.2 },
  refused: { bytes: 2 * KIB, part: 0.25 },
};
/** What must be possible with however little memory: it is better to serve these and to warn. */
const MIN_CAPACITY = 16;

/** What `config` asks for. */
export function computeDemand(config: Config, isTraced: boolean): Demand {
  const { routes, credentials, fleet, listen, admin } = config;
  const throttles = new Map(routes.map((route) => [route.throttleGroup, route]));
  let [requests, upstreamConnections] = [0, 0];
  for (const { throttle, queue } of throttles.values()) {
    requests += queue.max + throttle.maxInFlight;
    upstreamConnections += throttle.maxInFlight + throttle.maxStreams;
  }
  const listening = countSockets(listen.address) + countSockets(admin.address);
  // Two for each: while one connection is replaced, there is another.
  const services = 2 * (credentials.length + (fleet === undefined ? 0 : 1) + (isTraced ? 1 : 0));
  return {
    connections: listen.maxConnections,
    isConnectionLimitSet: listen.maxConnections !== settings.maxConnections.default,
    requests,
    upstreamConnections,
    otherDescriptors: listening + services,
    replayTotalBytes: routes[0].retry.replayTotalBytes,
  };
}

function countSockets(address: Config['listen']['address']): number {
  return address.kind === 'tcp' && address.host === 'localhost' ? 2 : 1;
}

/** Divides descriptors and memory; each part gets a minimum. */
export function planBudgets(machine: Machine, demand: Demand): BudgetDecision {
  const descriptors = shareDescriptors(machine, demand);
  if (descriptors === undefined) return { kind: 'too-small', problem: describeTooFew(machine, demand) };
  const memory = shareMemory(machine, demand);
  const budgets: Budgets = {
    connections: Math.min(demand.connections, descriptors.connections, memory.connections),
    refusedConnections: Math.min(descriptors.refused, memory.refused),
    adminConnections: descriptors.admin,
    requests: Math.min(descriptors.requests, memory.requests),
    replayTotalBytes: memory.replayTotalBytes,
  };
  return { kind: 'fits', budgets, warnings: [...warnOfDescriptors(machine, demand, descriptors), ...memory.warnings] };
}

interface DescriptorShares {
  readonly refused: number;
  readonly admin: number;
  readonly connections: number;
  readonly requests: number;
}

function shareDescriptors({ descriptorLimit, openDescriptors }: Machine, demand: Demand): DescriptorShares | undefined {
  const limit = descriptorLimit ?? Number.MAX_SAFE_INTEGER;
  const shared = limit - openDescriptors - SPARE_DESCRIPTORS - demand.otherDescriptors;
  if (shared < MIN_SHARED_DESCRIPTORS) return undefined;
  const refused = Math.min(MAX_REFUSED, Math.floor(shared / 4));
  const admin = Math.min(MAX_ADMIN, Math.floor(shared / 8));
  const left = shared - refused - admin;
  const upstream = computeUpstreamDescriptors(demand);
  // Each request that is sent has one connection on either side, so that half of them for clients is enough for all the others.
  const connections = Math.max(left - upstream, Math.floor(left / 2));
  return { refused, admin, connections, requests: left - connections < upstream ? left - connections : Infinity };
}

/** Some are opened for one request while those of the pool are taken. */
function computeUpstreamDescriptors({ upstreamConnections }: Demand): number {
  return Math.ceil(upstreamConnections * 1.125);
}

function warnOfDescriptors(machine: Machine, demand: Demand, { connections }: DescriptorShares): string[] {
  if (machine.descriptorLimit === undefined || connections >= demand.connections) return [];
  const served = demand.connections + computeUpstreamDescriptors(demand) + MAX_ADMIN;
  const shared = Math.min(served + MAX_REFUSED, Math.ceil((served * 4) / 3));
  const needed = machine.openDescriptors + SPARE_DESCRIPTORS + demand.otherDescriptors + shared;
  return [
    `${describeDescriptorLimit(machine)} is enough for ${formatCount(connections, 'client connection')}, while ` +
      `${formatSettingName('listen.maxConnections')} asks for ${String(demand.connections)}: beyond that, those that wait longest are closed, and others are refused with 503. ` +
      `${RAISE_DESCRIPTORS} to ${String(needed)}, or lower ${formatSettingName('listen.maxConnections')}`,
  ];
}

function describeTooFew(machine: Machine, demand: Demand): string {
  const needed = machine.openDescriptors + SPARE_DESCRIPTORS + demand.otherDescriptors + MIN_SHARED_DESCRIPTORS;
  return `${describeDescriptorLimit(machine)} is too low to serve even one client: ${String(needed)} are needed. ${RAISE_DESCRIPTORS}`;
}

const RAISE_DESCRIPTORS = 'Raise the limit (ulimit -n; LimitNOFILE of systemd)';

function describeDescriptorLimit({ descriptorLimit }: Machine): string {
  return `the limit of ${String(descriptorLimit)} file descriptors`;
}

interface MemoryShares {
  readonly connections: number;
  readonly requests: number;
  readonly refused: number;
  readonly replayTotalBytes: number;
  readonly warnings: readonly string[];
}

function shareMemory(machine: Machine, demand: Demand): MemoryShares {
  const memoryBytes = Math.max(0, 0.95 * machine.memoryLimitBytes - MEMORY.baseBytes);
  const heapBytes = Math.max(0, 0.9 * machine.heapLimitBytes - HEAP.baseBytes);
  const replayTotalBytes = Math.min(demand.replayTotalBytes, Math.floor(memoryBytes / 2));
  const freeBytes = memoryBytes - replayTotalBytes;
  const fit = (what: 'request' | 'connection' | 'refused'): number => {
    const [memory, heap] = [computeCapacity(freeBytes, MEMORY[what]), computeCapacity(heapBytes, HEAP[what])];
    return Math.max(MIN_CAPACITY, Math.min(memory, heap));
  };
  const requests = fit('request');
  // Each request has a connection.
  const connections = requests + fit('connection');
  const isHeap = computeCapacity(heapBytes, HEAP.request) < computeCapacity(freeBytes, MEMORY.request);
  const limit = isHeap
    ? `the heap of ${formatMebibytes(machine.heapLimitBytes)} (--max-old-space-size)`
    : `the memory limit of ${formatMebibytes(machine.memoryLimitBytes)}`;
  const shares = { connections, requests, refused: fit('refused'), replayTotalBytes };
  return { ...shares, warnings: warnOfMemory(limit, machine, demand, shares) };
}

function computeCapacity(freeBytes: number, { bytes, part }: Cost): number {
  return Math.floor((part * freeBytes) / bytes);
}

function warnOfMemory(
  limit: string,
  machine: Machine,
  demand: Demand,
  { connections, requests, replayTotalBytes }: Omit<MemoryShares, 'warnings'>,
): string[] {
  const warnings = [];
  if (requests < demand.requests)
    warnings.push(
      `${limit} is enough for ${formatCount(requests, 'request')} at once, while ${formatSettingName('queue.max')} and ` +
        `${formatSettingName('throttle.maxInFlight')} ask for ${String(demand.requests)}: further ones are refused with 503. Raise the limit or lower these`,
    );
  // The default is an upper bound, so that no warning is given: idle connections give way to new ones.
  if (demand.isConnectionLimitSet && connections < demand.connections)
    warnings.push(
      `${limit} is enough for ${formatCount(connections, 'client connection')}, while ${formatSettingName('listen.maxConnections')} asks for ` +
        `${String(demand.connections)}: beyond that, those that wait longest are closed, and the rest is refused with 503. Raise the limit or lower it`,
    );
  if (replayTotalBytes < demand.replayTotalBytes)
    warnings.push(
      `the memory limit of ${formatMebibytes(machine.memoryLimitBytes)} is enough for ${formatMebibytes(replayTotalBytes)} of request bodies, while ` +
        `${formatSettingName('retry.replayTotalBytes')} asks for ${formatMebibytes(demand.replayTotalBytes)}: further ones are streamed once. Raise the limit or lower it`,
    );
  return warnings;
}

function formatCount(number: number, noun: string): string {
  return `${String(number)} ${noun}${number === 1 ? '' : 's'}`;
}

function formatMebibytes(bytes: number): string {
  return `${String(Math.round(bytes / MIB))} MiB`;
}
