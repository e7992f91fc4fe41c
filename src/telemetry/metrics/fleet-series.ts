/** The metrics of a fleet, registered only where a fleet is configured: its Redis commands, shared tokens and connection. */
import { Gauge } from 'prom-client';
import type { Registry } from 'prom-client';
import { METRIC_PREFIX, TOKEN_OUTCOMES } from './catalogue.ts';
import type { FleetCommandOutcome } from '../events.ts';
import { createCounter } from './series.ts';
import type { IncrementCounter } from './series.ts';

// Keys of a record, so that the compiler reports a missing one.
const FLEET_COMMAND_OUTCOMES = Object.keys({ ok: 0, timeout: 0, error: 0 } satisfies Record<FleetCommandOutcome, 0>);

/** The state of a fleet that the gauges show. */
export interface FleetSnapshot {
  readonly connected: boolean;
  /** Redis is connected, and its replies are too late to be used. */
  readonly degraded: boolean;
  /** Replicas that share a quota, this one included, by throttle. */
  readonly quotas: readonly { readonly route: string; readonly replicas: number }[];
}

export interface FleetMetrics {
  readonly commands: IncrementCounter;
  readonly tokens: IncrementCounter;
  /** Sets the gauges. */
  update(reading: FleetSnapshot): void;
}

/** Registers the metrics of a fleet, every series at 0. */
export function createFleetMetrics(registry: Registry, credentials: readonly string[]): FleetMetrics {
  const connected = new Gauge({
    name: `${METRIC_PREFIX}fleet_connected`,
    help: '1 while the Redis of the fleet is connected and replies in time.',
    registers: [registry],
  });
  const degraded = new Gauge({
    name: `${METRIC_PREFIX}fleet_degraded`,
    help: '1 while the Redis of the fleet replies too late to be used.',
    registers: [registry],
  });
  const replicas = new Gauge({
    name: `${METRIC_PREFIX}fleet_replicas`,
    help: 'Replicas that share the quota, this one included.',
    labelNames: ['route'],
    registers: [registry],
  });
  return {
    commands: createCounter({
      registry,
      name: `${METRIC_PREFIX}fleet_commands_total`,
      help: 'Commands sent to the Redis of the fleet.',
      labelNames: ['outcome'],
      initial: FLEET_COMMAND_OUTCOMES.map((outcome) => [outcome]),
    }),
    tokens: createCounter({
      registry,
      name: `${METRIC_PREFIX}fleet_tokens_total`,
      help: 'Token results taken over from another replica.',
      labelNames: ['credential', 'outcome'],
      initial: credentials.flatMap((credential) => TOKEN_OUTCOMES.map((outcome) => [credential, outcome])),
    }),
    update: (reading) => {
      connected.set(reading.connected ? 1 : 0);
      degraded.set(reading.degraded ? 1 : 0);
      for (const { route, replicas: count } of reading.quotas) replicas.set({ route }, count);
    },
  };
}
