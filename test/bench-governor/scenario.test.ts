import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CLIENTS } from '../bench/governor/clients/clients.ts';
import { isCommonCase, planScenario } from '../bench/governor/plan.ts';
import { findScenario, listAllCases, listCases, parseScenario, readAllScenarios } from '../bench/governor/scenario.ts';

const JSON_OF_A_SCENARIO = {
  title: 'a window',
  limiter: { kind: 'fixed-window', calls: 100, windowMs: 10_000 },
  durationMs: 60_000,
};

describe('scenario files', () => {
  it('of the benchmark are valid, have unique titles and run whole windows', () => {
    const scenarios = readAllScenarios();
    expect(scenarios.length).toBeGreaterThanOrEqual(20);
    expect(new Set(scenarios.map(({ title }) => title)).size).toBe(scenarios.length);
    for (const { limiter, durationMs, startsMs, name } of scenarios) {
      if (!('windowMs' in limiter) || limiter.windowMs > durationMs) continue;
      const phaseMs = 'phaseMs' in limiter ? (limiter.phaseMs ?? 0) : 0;
      expect([name, (durationMs + startsMs + phaseMs) % limiter.windowMs]).toEqual([name, 0]);
    }
  });

  it('have defaults for all entries except title, limiter and duration', () => {
    expect(parseScenario('x', JSON_OF_A_SCENARIO)).toMatchObject({
      name: 'x',
      loads: [0.3, 0.8, 1.5, 'on-off', 'at-once'],
      hints: ['none'],
      replicas: [1],
      startsMs: 0,
      latencyMs: { base: 20, jitter: 20 },
      serviceMs: { base: 10, jitter: 0 },
    });
  });

  it.each([
    [{ titel: 'x' }, 'unknown entry "titel"'],
    [{ title: 5 }, '"title" must be a text'],
    [{ durationMs: '60' }, '"durationMs" must be a number'],
    [{ durationMs: -1 }, '"durationMs" must be a number'],
    [{ limiter: undefined }, 'needs "limiter"'],
    [{ limiter: [] }, 'a limiter must be an object'],
    [{ limiter: { kind: 'leaky' } }, '"leaky" is no kind of limiter'],
    [{ limiter: { kind: 'fixed-window', calls: 1, windowMs: 1, window: 1 } }, 'unknown entry "window"'],
    [{ limiter: { kind: 'sliding-log', calls: 1, windowMs: 1, phaseMs: 1 } }, 'unknown entry "phaseMs"'],
    [{ limiter: { kind: 'token-bucket', perSecond: 1 } }, 'needs "burst"'],
    [{ limiter: { kind: 'steps', steps: [] } }, '"steps" must be a list with something in it'],
    [{ hints: ['retry'] }, 'a hint must be one of none, retry-after-seconds'],
    [{ loads: [{ perSecond: 1, on: 2 }] }, 'unknown entry "on"'],
    [{ loads: ['often'] }, 'a load must be an object'],
    [{ replicas: [] }, '"replicas" must be a list with something in it'],
    [{ latencyMs: { base: 1 } }, 'needs "jitter"'],
  ])('with %j are invalid', (changes, message) => {
    expect(() => parseScenario('x', { ...JSON_OF_A_SCENARIO, ...changes })).toThrow(message);
  });

  it('are found by name or path, and errors name the file', () => {
    expect(findScenario('bucket-10-b20').limiter).toEqual({ kind: 'token-bucket', perSecond: 10, burst: 20 });
    const folder = mkdtempSync(join(tmpdir(), 'scenario-'));
    try {
      const path = join(folder, 'mine.json');
      writeFileSync(path, JSON.stringify(JSON_OF_A_SCENARIO));
      expect(findScenario(path)).toMatchObject({ name: 'mine', title: 'a window' });
      writeFileSync(path, '{');
      expect(() => findScenario(path)).toThrow(/^scenario mine: /);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('the cases of a scenario', () => {
  const scenario = parseScenario('x', {
    ...JSON_OF_A_SCENARIO,
    loads: [0.8, 1.5],
    hints: ['none', 'ratelimit', 'retry-after-seconds'],
    replicas: [1, 4],
  });
  const summary = (cases: readonly ReturnType<typeof listCases>[number][]): unknown[] =>
    cases.map(({ load, conditions }) => [load, conditions.hint, conditions.replicas]);

  it('are each load, each other hint style and each other number of replicas once', () => {
    expect(summary(listCases(scenario))).toEqual([
      ['0.8×', 'none', 1],
      ['1.5×', 'none', 1],
      ['1.5×', 'ratelimit', 1],
      ['1.5×', 'retry-after-seconds', 1],
      ['1.5×', 'none', 4],
    ]);
    expect(listAllCases(scenario)).toHaveLength(12);
  });

  it('are all run for ours, the compared ones for peers, and one common case for all with the same seeds', () => {
    const plans = CLIENTS.map((client) => ({ client, jobs: planScenario(scenario, client, 20) }));
    for (const { client, jobs } of plans) {
      expect(summary(jobs.map(({ played }) => played))).toEqual(
        summary(listCases(scenario)).filter((_, index) => client.name === 'ours' || index !== 2),
      );
      const commonJobs = jobs.filter(({ played }) => isCommonCase(played));
      expect(commonJobs.map(({ seeds }) => seeds.length)).toEqual([client.hasKnownLimit ? 2 : 20]);
    }
  });
});
