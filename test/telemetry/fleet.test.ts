/** Metrics and log lines of a fleet. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import type { SidecarEvent } from '../../src/telemetry/events.ts';
import { createLog } from '../../src/telemetry/log/log.ts';
import type { FleetSnapshot } from '../../src/telemetry/metrics/gauges.ts';
import { createMetrics } from '../../src/telemetry/metrics/metrics.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { readSamples } from './metrics/exposition.ts';
import { MemoryStream } from './log/memory-stream.ts';

const notRequested: SidecarEvent = {
  kind: 'token-not-asked',
  credential: 'default',
  from: 'fleet',
  outcome: 'rejected',
  detail: 'auth.test responded 401 and the error "invalid_client"',
  nextInMs: 60_000.4,
};

function create(fleet?: () => FleetSnapshot) {
  return createMetrics({
    routes: ['default'],
    credentials: ['default'],
    readStates: () => ({ version: '1.2.3', tokens: [], throttles: [], fleet: fleet?.() }),
    hasFleet: fleet !== undefined,
  });
}

async function fleetSamples(metrics: ReturnType<typeof create>): Promise<Record<string, number>> {
  const samples = [...readSamples(await metrics.render())].filter(([series]) => series.includes('fleet'));
  return Object.fromEntries(samples.map(([series, value]) => [series.replace('bearer_sidecar_fleet_', ''), value]));
}

describe('metrics of a fleet', () => {
  it('exist from the start, at 0', async () => {
    expect(
      await fleetSamples(
        create(() => ({ connected: false, degraded: false, quotas: [{ route: 'default', replicas: 1 }] })),
      ),
    ).toEqual({
      connected: 0,
      degraded: 0,
      'replicas{route="default"}': 1,
      'commands_total{outcome="ok"}': 0,
      'commands_total{outcome="timeout"}': 0,
      'commands_total{outcome="error"}': 0,
      'tokens_total{credential="default",outcome="ok"}': 0,
      'tokens_total{credential="default",outcome="rejected"}': 0,
      'tokens_total{credential="default",outcome="unavailable"}': 0,
      'tokens_total{credential="default",outcome="malformed"}': 0,
    });
  });

  it('do not exist without a fleet', async () => {
    const metrics = create();
    metrics.observe({ kind: 'fleet-command', outcome: 'ok' });
    expect(await fleetSamples(metrics)).toEqual({});
  });

  it('count commands and token results of other replicas', async () => {
    const metrics = create(() => ({ connected: true, degraded: false, quotas: [{ route: 'default', replicas: 4 }] }));
    for (const outcome of ['ok', 'ok', 'timeout', 'error'] as const)
      metrics.observe({ kind: 'fleet-command', outcome });
    metrics.observe({ kind: 'token-found', credential: 'default', from: 'fleet', validForMs: 1000 });
    metrics.observe({ kind: 'token-found', credential: 'default', from: 'a file', validForMs: 1000 });
    metrics.observe(notRequested);
    expect(await fleetSamples(metrics)).toMatchObject({
      connected: 1,
      'commands_total{outcome="ok"}': 2,
      'commands_total{outcome="timeout"}': 1,
      'commands_total{outcome="error"}': 1,
      'tokens_total{credential="default",outcome="ok"}': 1,
      'tokens_total{credential="default",outcome="rejected"}': 1,
    });
    const requests = readSamples(await metrics.render()).get(
      'bearer_sidecar_token_requests_total{credential="default",outcome="rejected"}',
    );
    expect(requests).toBe(0);
  });

  it('pass promtool check metrics', async () => {
    const input = await create(() => ({
      connected: true,
      degraded: false,
      quotas: [{ route: 'default', replicas: 4 }],
    })).render();
    const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input, encoding: 'utf8' });
    expect([status, stdout, stderr]).toEqual([0, '', '']);
  });
});

it('the log has lines for the fleet connection and for failed token requests of other processes', async () => {
  const stream = new MemoryStream();
  const log = createLog({ level: 'info', destination: stream, clock: new ManualClock() });
  log.observe({ kind: 'fleet-joined' });
  log.observe({ kind: 'fleet-command', outcome: 'timeout' });
  log.observe({ kind: 'fleet-lost', detail: 'Redis refused the connection (ECONNREFUSED)' });
  log.observe(notRequested);
  await log.close(0);
  expect(stream.lines.map(({ time: _time, ...line }) => line)).toEqual([
    { level: 'info', msg: 'fleet joined' },
    {
      level: 'warn',
      detail: 'Redis refused the connection (ECONNREFUSED)',
      msg: 'connection to the fleet lost: this replica works alone',
    },
    {
      level: 'warn',
      credential: 'default',
      outcome: 'rejected',
      detail: 'auth.test responded 401 and the error "invalid_client"',
      nextInMs: 60_000,
      from: 'fleet',
      msg: 'token request of another process failed',
    },
  ]);
});
