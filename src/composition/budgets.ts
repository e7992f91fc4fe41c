/**
 * Computes limits for connections, requests and buffered bytes from the machine's resources and the configuration. Pure: machine.ts
 * reads the machine, the two ports enforce the limits. The costs are measured (docs/adr/0021).
 */
import { formatSettingName } from '../config/load/problems.ts';
import { findThrottleGroups, type Config } from '../config/config.ts';
import { listen as settings } from '../config/schema/schema-inbound.ts';
import type { PortLimits } from '../listener/open-connections.ts';

/** The resources of this process at its start. */
export interface Machine {
  /** The limit of file descriptors; undefined where it is unknown. */
  readonly descriptorLimit: number | undefined;
  readonly openDescriptors: number;
  /** The limit of V8's old generation. */
  readonly heapLimitBytes: number;
  /** What the control group allows, or what the machine has. */
  readonly memoryLimitBytes: number;
}

/** The limits that the configuration asks for. */
export interface Demand {
  readonly connections: number;
  /** `listen.maxConnections` is not its default. */
  readonly isConnectionLimitSet: boolean;
  /** Requests that may wait or be in flight in all throttles together. */
  readonly requests: number;
  /** The largest number of connections to upstreams. */
  readonly upstreamConnections: number;
  /** Descriptors for listening sockets, token endpoints, Redis and traces. */
  readonly otherDescriptors: number;
  readonly replayTotalBytes: number;
}

export interface Budgets extends PortLimits {
  readonly adminConnections: number;
  readonly replayTotalBytes: number;
}

const KIB = 1024;
const MIB = 1024 * KIB;

/** For files, name lookups, and descriptors that Node.js opens later. */
const SPARE_DESCRIPTORS = 6;
/** For clients, upstreams, the admin port and refused connections together. */
const MIN_SHARED_DESCRIPTORS = 8;
const MAX_REFUSED = 4096;
const MAX_ADMIN = 64;

// Each item has its cost, and the share of the resource that all such items may take.
/** Resident memory. */
const MEMORY = {
  /** Under load, without buffered requests. */
  baseBytes: 95 * MIB,
  /** Node.js buffers 64 KiB of an unread body. */
  request: { bytes: 84 * KIB, share: 0.78 },
  /** With its parser and an unfinished request head of 16 KiB. */
  connection: { bytes: 34 * KIB, share: 0.1 },
  refused: { bytes: 6 * KIB, share: 0.12 },
};
/** V8's heap. */
const HEAP = {
  baseBytes: 20 * MIB,
  request: { bytes: 28 * KIB, share: 0.55 },
  connection: { bytes: 21 * KIB, share: 0.2 },
  refused: { bytes: 2 * KIB, share: 0.25 },
};
/** What the resident memory of a request leaves beside its body. A larger head takes the place of others. */
const HEAD_BYTES = 20 * KIB;
/** Served even with too little memory, together with a warning. */
const MIN_CAPACITY = 16;

export function computeDemand(config: Config, isTraced: boolean): Demand {
  const { routes, credentials, fleet, listen, admin } = config;
  let [requests, upstreamConnections, observedConnections] = [0, 0, 0];
  for (const { throttle, queue } of findThrottleGroups(config).values()) {
    requests += queue.max + throttle.maxInFlight;
    // Client connections bound those of all observed groups together.
    if (throttle.mode === 'observe') observedConnections = listen.maxConnections;
    else upstreamConnections += throttle.maxInFlight + throttle.maxStreams;
  }
  const listening = countSockets(listen.address) + countSockets(admin.address);
  // Two each: a new connection is opened before the old one closes.
  const services = 2 * (credentials.length + (fleet === undefined ? 0 : 1) + (isTraced ? 1 : 0));
  return {
    connections: listen.maxConnections,
    isConnectionLimitSet: listen.maxConnections !== settings.maxConnections.default,
    requests,
    upstreamConnections: upstreamConnections + observedConnections,
    otherDescriptors: listening + services,
    replayTotalBytes: routes[0].retry.replayTotalBytes,
  };
}

function countSockets(address: Config['listen']['address']): number {
  return address.kind === 'tcp' && address.host === 'localhost' ? 2 : 1;
}

/** Divides descriptors and memory among their uses; each gets a minimum. @throws Error when not even one client can be served */
export function planBudgets(machine: Machine, demand: Demand) {
  const descriptors = shareDescriptors(machine, demand);
  if (descriptors === undefined) throw new Error(describeTooFew(machine, demand));
  const memory = shareMemory(machine, demand);
  const budgets: Budgets = {
    connections: Math.min(demand.connections, descriptors.connections, memory.connections),
    rejectedConnections: Math.min(descriptors.refused, memory.refused),
    adminConnections: descriptors.admin,
    requests: Math.min(descriptors.requests, memory.requests),
    headBytes: memory.requests * HEAD_BYTES,
    replayTotalBytes: memory.replayTotalBytes,
  };
  const warnings = [...warnOfDescriptors(machine, demand, descriptors.connections), ...memory.warnings];
  return { budgets, warnings };
}

/** Undefined when not even one client can be served. */
function shareDescriptors({ descriptorLimit, openDescriptors }: Machine, demand: Demand) {
  const limit = descriptorLimit ?? Number.MAX_SAFE_INTEGER;
  const shared = limit - openDescriptors - SPARE_DESCRIPTORS - demand.otherDescriptors;
  if (shared < MIN_SHARED_DESCRIPTORS) return undefined;
  const refused = Math.min(MAX_REFUSED, Math.floor(shared / 4));
  const admin = Math.min(MAX_ADMIN, Math.floor(shared / 8));
  const left = shared - refused - admin;
  const upstream = computeUpstreamDescriptors(demand);
  // A request in flight has one connection on each side, so that clients need at least half of them.
  const connections = Math.max(left - upstream, Math.floor(left / 2));
  return { refused, admin, connections, requests: left - connections < upstream ? left - connections : Infinity };
}

/** Some connections are opened for one request while those of the pool are in use. */
function computeUpstreamDescriptors({ upstreamConnections }: Demand): number {
  return Math.ceil(upstreamConnections * 1.125);
}

function warnOfDescriptors(machine: Machine, demand: Demand, connections: number): string[] {
  if (machine.descriptorLimit === undefined || connections >= demand.connections) return [];
  const served = demand.connections + computeUpstreamDescriptors(demand) + MAX_ADMIN;
  const shared = Math.min(served + MAX_REFUSED, Math.ceil((served * 4) / 3));
  const needed = machine.openDescriptors + SPARE_DESCRIPTORS + demand.otherDescriptors + shared;
  return [
    `${describeDescriptorLimit(machine)} is enough for ${formatCount(connections, 'client connection')}, while ` +
      `${formatSettingName('listen.maxConnections')} asks for ${String(demand.connections)}: beyond that, the longest idle ones are closed, and others are refused with 503. ` +
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

function shareMemory(machine: Machine, demand: Demand) {
  const memoryBytes = Math.max(0, 0.95 * machine.memoryLimitBytes - MEMORY.baseBytes);
  const heapBytes = Math.max(0, 0.9 * machine.heapLimitBytes - HEAP.baseBytes);
  const replayTotalBytes = Math.min(demand.replayTotalBytes, Math.floor(memoryBytes / 2));
  const freeBytes = memoryBytes - replayTotalBytes;
  const fit = (item: 'request' | 'connection' | 'refused'): number => {
    const [memory, heap] = [computeCapacity(freeBytes, MEMORY[item]), computeCapacity(heapBytes, HEAP[item])];
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

function computeCapacity(freeBytes: number, { bytes, share }: typeof MEMORY.request): number {
  return Math.floor((share * freeBytes) / bytes);
}

function warnOfMemory(
  limit: string,
  machine: Machine,
  demand: Demand,
  { connections, requests, replayTotalBytes }: Pick<Budgets, 'connections' | 'requests' | 'replayTotalBytes'>,
): string[] {
  const warnings = [];
  if (requests < demand.requests)
    warnings.push(
      `${limit} is enough for ${formatCount(requests, 'request')} at once, while ${formatSettingName('queue.max')} and ` +
        `${formatSettingName('throttle.maxInFlight')} ask for ${String(demand.requests)}: further ones are refused with 503. Raise the limit or lower these`,
    );
  // No warning about the default: it is an upper bound, and new connections displace idle ones.
  if (demand.isConnectionLimitSet && connections < demand.connections)
    warnings.push(
      `${limit} is enough for ${formatCount(connections, 'client connection')}, while ${formatSettingName('listen.maxConnections')} asks for ` +
        `${String(demand.connections)}: beyond that, the longest idle ones are closed, and the rest is refused with 503. Raise the limit or lower it`,
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
