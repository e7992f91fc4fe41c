import { describe, expect, it } from 'vitest';
import { CLIENTS } from '../bench/governor/clients/clients.ts';
import type { Figures } from '../bench/governor/figures.ts';
import { formatGoodput, formatSeconds, formatShare, formatTable } from '../bench/governor/format.ts';
import { createJob, isCommonCase } from '../bench/governor/plan.ts';
import { drawPlot } from '../bench/governor/plot.ts';
import { playAll, type Result } from '../bench/governor/pool.ts';
import { writeReport } from '../bench/governor/report.ts';
import { listCases, parseScenario } from '../bench/governor/scenario.ts';

const SCENARIO = parseScenario('short', {
  title: 'a bucket & more',
  limiter: { kind: 'token-bucket', perSecond: 20, burst: 10 },
  loads: [1.5],
  durationMs: 20_000,
});
const [PLAYED] = listCases(SCENARIO);
if (PLAYED === undefined) throw new Error('the scenario has no case');

const FIGURES: Figures = {
  goodput: 0.98,
  refusedShare: 0.01,
  waitP50Ms: 0,
  waitP99Ms: 12,
  convergedMs: Infinity,
  stepUpMs: undefined,
  stepDownMs: undefined,
  jain: 1,
  failedShare: 0.3,
  attempts: 100,
};

function resultOf(client: string, changes: Partial<Figures> = {}): Result {
  const entry = CLIENTS.find(({ name }) => name === client);
  if (entry === undefined) throw new Error(`no client ${client}`);
  return { job: createJob(entry, PLAYED!, 1), figures: { ...FIGURES, ...changes } };
}

describe('all clients', () => {
  it('run in worker threads in virtual time, with a goodput between 0.3 and 1.05', async () => {
    const jobs = CLIENTS.map((client) => createJob(client, PLAYED, 1));
    const reported: string[] = [];
    const results = await playAll(jobs, 2, ({ job }) => reported.push(job.client));
    expect(reported).toEqual(CLIENTS.map(({ name }) => name));
    expect(results.map(({ job }) => job.client)).toEqual(reported);
    for (const { figures, job } of results) {
      expect([job.client, figures.goodput > 0.3 && figures.goodput < 1.05]).toEqual([job.client, true]);
      if (CLIENTS.some(({ name, hasKnownLimit }) => name === job.client && hasKnownLimit))
        expect(figures.refusedShare).toBe(0);
      if (job.client === 'full-jitter') expect(figures.refusedShare).toBeGreaterThan(0.3);
    }
  });

  it('fail the run when a worker fails', async () => {
    const job = { ...createJob(CLIENTS[0]!, PLAYED, 1), client: 'unknown' };
    await expect(playAll([job], 1, () => undefined)).rejects.toThrow('no client "unknown"');
  });
});

describe('the report', () => {
  it('has a column for each client, a star for those with the known limit, and the published versions', () => {
    const report = writeReport(
      CLIENTS.map(({ name }) => resultOf(name)),
      { bottleneck: '1.2.3' },
    );
    const header = report.split('\n').find((line) => line.startsWith('| limiter'));
    expect(header?.split('|').map((cell) => cell.trim())).toEqual([
      '',
      'limiter',
      ...CLIENTS.map(({ title, hasKnownLimit }) => (hasKnownLimit ? `${title} \\*` : title)),
      '',
    ]);
    expect(report).toContain('(bottleneck 1.2.3)');
    expect(report).toMatch(/\| a bucket & more\s+\| 0\.980 \/ 1\.0 %/);
  });

  it('lists exactly the peers without the known limit that are better in both figures', () => {
    const report = writeReport(
      [
        resultOf('ours'),
        resultOf('aws-adaptive', { goodput: 0.99, refusedShare: 0.001 }),
        resultOf('full-jitter', { goodput: 1, refusedShare: 0.5 }),
        resultOf('p-retry', { goodput: 0.9, refusedShare: 0 }),
        resultOf('bottleneck-known-limit', { goodput: 1, refusedShare: 0 }),
      ],
      {},
    );
    const lines = report.split('\n').filter((line) => /^- \S+: .*, ours /.test(line));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('aws-adaptive: a bucket & more');
    expect(writeReport([resultOf('ours'), resultOf('p-retry', { goodput: 0.9 })], {})).toContain('in none is one');
  });
});

describe('the plot', () => {
  it('has a mark for each client and scenario: more refusals to the right, more goodput at the top', () => {
    const svg = drawPlot([
      resultOf('ours', { goodput: 1, refusedShare: 0 }),
      resultOf('full-jitter', { goodput: 0.5, refusedShare: 0.5 }),
    ]);
    const marks = [...svg.matchAll(/translate\((?<x>[\d.]+) (?<y>[\d.]+)\)" d="[^"]*"><title>(?<title>[^<]*)</g)];
    const positions = new Map(marks.map(({ groups }) => [groups?.title, [Number(groups?.x), Number(groups?.y)]]));
    const [ours, jitter] = [
      positions.get('ours: a bucket &amp; more'),
      positions.get('full-jitter: a bucket &amp; more'),
    ];
    expect(ours![0]).toBeLessThan(jitter![0]!);
    expect(ours![1]).toBeLessThan(jitter![1]!);
    expect(isCommonCase(PLAYED)).toBe(true);
  });

  it('closes every element', () => {
    const svg = drawPlot(CLIENTS.map(({ name }) => resultOf(name)));
    const open: string[] = [];
    for (const [, end, name, self] of svg.matchAll(/<(\/?)([a-z]+)[^>]*?(\/?)>/g)) {
      if (end === '/') expect(open.pop()).toBe(name);
      else if (self !== '/') open.push(name!);
    }
    expect(open).toEqual([]);
    for (const { title } of CLIENTS) expect(svg).toContain(title);
  });
});

describe('formatted figures', () => {
  it('are never rounded up to 1 or down to 0', () => {
    expect([0.97, 0.9999, 1, 1.0213].map(formatGoodput)).toEqual(['0.970', '0.999', '1.000', '1.021']);
    expect([0, 0.00004, 0.0004, 0.012, 0.43, 1].map(formatShare)).toEqual([
      '0 %',
      '<0.01 %',
      '0.04 %',
      '1.2 %',
      '43 %',
      '100 %',
    ]);
    expect([0, 12, 4321, 65_000, Infinity, undefined].map(formatSeconds)).toEqual([
      '0 s',
      '0.012 s',
      '4.3 s',
      '65 s',
      '∞',
      '–',
    ]);
  });

  it('are aligned in tables', () => {
    expect(formatTable(['a', 'long'], [['xyz', '1']])).toBe('| a   | long |\n| --- | ---- |\n| xyz | 1    |');
  });
});
