/** What may be held at once, from what the machine gives and the configuration asks for. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createBudgetPlanner } from '../../src/composition/machine.ts';
import { configOf } from '../config/base-env.ts';
import { tryRead } from '../../src/platform/try-read.ts';
import { computeDemand, planBudgets, type Budgets, type Demand, type Machine } from '../../src/composition/budgets.ts';

const MIB = 1024 * 1024;

/** The defaults of the configuration. */
const DEFAULTS: Demand = {
  connections: 10_000,
  isConnectionLimitSet: false,
  requests: 1064,
  upstreamConnections: 164,
  otherDescriptors: 6,
  replayTotalBytes: 32 * MIB,
};
const LARGE: Machine = {
  descriptorLimit: 1_048_576,
  openDescriptors: 20,
  heapLimitBytes: 4096 * MIB,
  memoryLimitBytes: 16_384 * MIB,
};
/** The image with the limit of the Helm chart. */
const CHART: Machine = { ...LARGE, heapLimitBytes: 85 * MIB, memoryLimitBytes: 256 * MIB };

function plan(machine: Partial<Machine>, demand: Partial<Demand> = {}) {
  return planBudgets({ ...LARGE, ...machine }, { ...DEFAULTS, ...demand });
}

describe('a large machine', () => {
  it('gives what the configuration asks for, without warnings', () => {
    const { budgets, warnings } = plan({});
    expect(warnings).toEqual([]);
    expect(budgets).toMatchObject({ connections: 10_000, adminConnections: 64, replayTotalBytes: 32 * MIB });
    expect(budgets.requests).toBeGreaterThan(10_000);
    expect(budgets.headBytes).toBeGreaterThan(200 * MIB);
  });

  it('gives it as well where the limit of descriptors is unknown', () => {
    expect(plan({ descriptorLimit: undefined }).warnings).toEqual([]);
  });
});

describe('the limit of descriptors', () => {
  it.each([48, 256, 1024])('of %i is divided, and the warning says what to change', (descriptorLimit) => {
    const { budgets, warnings } = plan({ descriptorLimit });
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toMatch(
      new RegExp(
        `^the limit of ${String(descriptorLimit)} file descriptors is enough for ${String(budgets.connections)} `,
      ),
    );
    expect(warnings[0]).toMatch(/ulimit -n; LimitNOFILE.*to \d+, or lower listen\.maxConnections \(SIDECAR_/);
  });

  it('that a warning recommends is enough', () => {
    fc.assert(
      fc.property(fc.integer({ min: 100, max: 20_000 }), fc.integer({ min: 1, max: 500 }), (connections, upstream) => {
        const demand = { connections, upstreamConnections: upstream };
        const [warning] = plan({ descriptorLimit: 48 }, demand).warnings;
        const descriptorLimit = Number(/ to (\d+), or lower/.exec(warning ?? '')?.[1]);
        expect(plan({ descriptorLimit }, demand)).toMatchObject({ warnings: [], budgets: { connections } });
      }),
    );
  });

  it('that is too low for one client is refused with the number that is needed', () => {
    expect(() => plan({ descriptorLimit: 36 })).toThrow(/36 file descriptors.*40 are needed/);
    expect(() => plan({ descriptorLimit: 40 })).not.toThrow();
  });
});

describe('a sidecar that exports traces', () => {
  it('keeps two more descriptors for its connections to the collector', () => {
    const machine = { ...LARGE, descriptorLimit: 10 };
    const start = (options: { readonly startTracer?: unknown }) => () =>
      createBudgetPlanner({ machine, ...options }, () => undefined)(configOf());
    expect(start({})).toThrow(': 40 are needed');
    expect(start({ startTracer: () => undefined })).toThrow(': 42 are needed');
  });
});

it('several routes that observe need as many connections to upstreams as there may be clients', () => {
  const { routes, ...config } = configOf({ SIDECAR_THROTTLE_MODE: 'observe' });
  const other = { ...routes[0], name: 'other', throttleGroup: 'other' };
  const demand = computeDemand({ ...config, routes: [routes[0], other] }, false);
  expect(demand.upstreamConnections).toBe(demand.connections);
});

describe('memory', () => {
  it("of the chart's limit is enough for the requests that the defaults ask for", () => {
    const { budgets, warnings } = plan(CHART);
    expect(warnings).toEqual([]);
    expect(budgets.requests).toBeGreaterThanOrEqual(1064);
    expect(budgets.connections).toBeGreaterThan(budgets.requests);
    expect(budgets.connections).toBeLessThan(2000);
  });

  it('that is too small for a configured limit gives a warning', () => {
    const { warnings } = plan(CHART, {
      connections: 50_000,
      isConnectionLimitSet: true,
      requests: 5000,
      replayTotalBytes: 1024 * MIB,
    });
    expect(warnings.map((warning) => warning.replace(/\d+ (?!MiB)/g, '# '))).toMatchObject(
      [
        /the memory limit of 256 MiB is enough for # requests at once, while queue\.max/,
        /the memory limit of 256 MiB is enough for # client connections, while listen\.maxConnections/,
        /the memory limit of 256 MiB is enough for \d+ MiB of request bodies, while retry\.replayTotalBytes/,
      ].map((pattern) => expect.stringMatching(pattern) as string),
    );
  });

  it('of a small heap is called heap in the warning', () => {
    expect(plan({ heapLimitBytes: 32 * MIB }).warnings).toEqual([
      expect.stringMatching(/^the heap of 32 MiB \(--max-old-space-size\) is enough for \d+ requests at once/),
    ]);
  });
});

describe('for every machine and configuration', () => {
  const machines = fc.record({
    descriptorLimit: fc.option(fc.integer({ min: 16, max: 2_000_000 }), { nil: undefined }),
    openDescriptors: fc.integer({ min: 10, max: 60 }),
    heapLimitBytes: fc.integer({ min: 8 * MIB, max: 8192 * MIB }),
    memoryLimitBytes: fc.integer({ min: 32 * MIB, max: 65_536 * MIB }),
  });
  const demands = fc.record({
    connections: fc.integer({ min: 1, max: 1_000_000 }),
    isConnectionLimitSet: fc.boolean(),
    requests: fc.integer({ min: 1, max: 200_000 }),
    upstreamConnections: fc.integer({ min: 1, max: 20_000 }),
    otherDescriptors: fc.integer({ min: 2, max: 40 }),
    replayTotalBytes: fc.integer({ min: 0, max: 8192 * MIB }),
  });

  it('no limit is zero or exceeds the demand, and all together fit the descriptors', () => {
    fc.assert(
      fc.property(machines, demands, (machine, demand) => {
        const planned = tryRead(() => planBudgets(machine, demand));
        if (planned === undefined) return;
        const { budgets } = planned;
        for (const name of [
          'connections',
          'rejectedConnections',
          'adminConnections',
          'requests',
        ] satisfies (keyof Budgets)[])
          expect(budgets[name]).toBeGreaterThanOrEqual(1);
        expect(budgets.connections).toBeLessThanOrEqual(demand.connections);
        expect(budgets.replayTotalBytes).toBeLessThanOrEqual(demand.replayTotalBytes);
        const { connections, rejectedConnections, adminConnections, requests } = budgets;
        const upstream = Math.min(demand.upstreamConnections, requests);
        const used = connections + rejectedConnections + adminConnections + upstream;
        const { descriptorLimit = Infinity, openDescriptors } = machine;
        expect(openDescriptors + demand.otherDescriptors + used).toBeLessThanOrEqual(descriptorLimit);
        if (budgets.connections < demand.connections && demand.isConnectionLimitSet)
          expect(planned.warnings).not.toEqual([]);
      }),
      { numRuns: 2000 },
    );
  });
});
