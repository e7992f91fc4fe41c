/** The short form of `npm run soak:connections`: crowds, slow readers and clients that leave, at a size for every run. */
import { describe, expect, it } from 'vitest';
import { measureConnectionLoad } from '../soak/crowd.ts';
import { measureClientAborts } from '../soak/departures.ts';
import { measureSlowReaders } from '../soak/slow-readers.ts';

const MIB = 1024 * 1024;

describe('a crowd', () => {
  it('of idle and dripping connections lets a normal client through', async () => {
    const { alone, beside, connections } = await measureConnectionLoad({ idle: 400, slow: 200, requests: 100 });
    expect(connections).toBeGreaterThanOrEqual(600);
    expect(alone.failed + beside.failed).toBe(0);
  });

  it('of slow readers is given its bodies whole, in bounded memory', async () => {
    const bodyBytes = 15_000_000;
    const { whole, idlePeakBytes, peakBytes } = await measureSlowReaders({ readers: 20, bodyBytes, pauseMs: 5 });
    expect(whole).toBe(20);
    // Of 300 MB.
    expect(peakBytes - idlePeakBytes).toBeLessThan(160 * MIB);
  });
});

describe('a client that leaves', () => {
  it.each(['queued', 'in a pause', 'in flight'] as const)('while it is %s frees its slot', async (place) => {
    // Each comes and goes where there is room for one.
    expect(await measureClientAborts(place, 3)).toHaveLength(3);
  });
});
