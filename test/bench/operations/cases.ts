/** Drawn partners with limits by operation, and the calls that an application makes there. */
import type { Random } from '../../../src/platform/clock.ts';

export const KINDS = ['own', 'shared', 'both', 'tenant word', 'tenant number', 'pair', 'idle', 'cold'] as const;
export type Kind = (typeof KINDS)[number];

export interface Operation {
  readonly method: string;
  readonly path: string;
  /** Calls offered per second; none after `until` (seconds), if that is given. */
  readonly rate: number;
  readonly until?: number;
}

/** A bucket, or a sliding window of `windowMs` that holds `burst` calls. */
export interface Limit {
  readonly perSecond: number;
  readonly burst: number;
  readonly windowMs: number | undefined;
  /** Operations that it counts together, as indexes. */
  readonly operations: readonly number[];
}

export interface OperationsCase {
  readonly kind: Kind;
  readonly operations: readonly Operation[];
  readonly limits: readonly Limit[];
  readonly statesWait: boolean;
  readonly roundTripMs: number;
}

const WORDS = ['quotes', 'policies', 'claims', 'documents', 'customers', 'payments', 'offers', 'products'];
const TENANTS = ['acme', 'globex', 'initech', 'umbrella'];
const METHODS = ['GET', 'POST', 'PUT'];

export function drawCase(kind: Kind, random: Random): OperationsCase {
  const pick = (from: number, to: number): number => from * (to / from) ** random();
  const count = kind === 'own' || kind === 'shared' ? 1 + Math.floor(random() * 12) : 2 + Math.floor(random() * 7);
  const operations = Array.from({ length: count }, (_, index) => drawOperation(kind, index, pick(0.7, 14)));
  const offered = (indexes: readonly number[]): number =>
    indexes.reduce((sum, index) => sum + (operations[index]?.rate ?? 0), 0);
  const limit = (indexes: readonly number[], load: number): Limit => {
    const perSecond = Math.max(0.5, offered(indexes) / load);
    const windowMs = random() < 0.4 ? [1000, 10_000, 60_000][Math.floor(random() * 3)] : undefined;
    const burst =
      windowMs === undefined ? Math.max(1, Math.round(perSecond * pick(0.3, 3))) : (perSecond * windowMs) / 1000;
    return { perSecond, burst: Math.max(1, Math.round(burst)), windowMs, operations: indexes };
  };
  const all = operations.map((_, index) => index);
  const limits = drawLimits(kind, all, limit, pick);
  return { kind, operations, limits, statesWait: random() < 0.5, roundTripMs: pick(2, 300) };
}

function drawOperation(kind: Kind, index: number, rate: number): Operation {
  const method = METHODS[index % METHODS.length] ?? 'GET';
  const word = WORDS[index % WORDS.length] ?? 'quotes';
  if (kind === 'tenant word') return { method, path: `/${TENANTS[index % TENANTS.length]}/${word}`, rate };
  // Numbers are no part of an operation's name: all tenants look like one.
  if (kind === 'tenant number') return { method: 'GET', path: `/t/${index}/quotes`, rate };
  return { method, path: `/${word}`, rate, ...(kind === 'idle' && index === 0 && { until: 60 }) };
}

function drawLimits(
  kind: Kind,
  all: readonly number[],
  limit: (indexes: readonly number[], load: number) => Limit,
  pick: (from: number, to: number) => number,
): Limit[] {
  switch (kind) {
    case 'shared':
      return [limit(all, pick(1.1, 3))];
    case 'both':
      return [limit([0], pick(1.3, 4)), limit(all, pick(1.05, 1.6))];
    case 'tenant word':
      return TENANTS.map((_, tenant) => all.filter((index) => index % TENANTS.length === tenant))
        .filter((indexes) => indexes.length > 0)
        .map((indexes, tenant) => limit(indexes, tenant % 2 === 0 ? pick(1.2, 3) : 0.5));
    case 'tenant number':
      return all.map((index) => limit([index], index % 2 === 0 ? pick(1.2, 3) : 0.5));
    case 'pair':
      return [limit(all.slice(0, 2), pick(1.3, 3))];
    case 'own':
    case 'idle':
    case 'cold':
      // Every second operation is free.
      return all.filter((index) => index % 2 === 0).map((index) => limit([index], pick(1.2, 4)));
  }
}
