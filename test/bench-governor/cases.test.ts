import { describe, expect, it } from 'vitest';
import { type Case, CASES, findCase } from '../bench/governor/cases/cases.ts';
import { play, SPAN_MS } from '../bench/governor/cases/play.ts';
import { writeCaseReport } from '../bench/governor/cases/report.ts';

const FIRST = shorten('noise: 10 % with Retry-After 1, no limit');
const SECOND = shorten('slow upstream: 5/s b10 of 5 to 9 s, load 8/s');

describe('the cases', () => {
  it('have names of their own, and halves of whole spans', () => {
    expect(new Set(CASES.map(({ name }) => name)).size).toBe(CASES.length);
    for (const { durationMs } of CASES) expect(durationMs % (2 * SPAN_MS)).toBe(0);
  });

  it.each(['ours', 'plain'] as const)('%s: a run is the same again after other runs', async (client) => {
    const first = await play(FIRST, { client, seed: 1, seedText: '' });
    const second = await play(SECOND, { client, seed: 1, seedText: '' });
    expect(await play(SECOND, { client, seed: 1, seedText: '' })).toEqual(second);
    expect(await play(FIRST, { client, seed: 1, seedText: '' })).toEqual(first);
  });

  it('offer both clients the same calls, and others with another seed or text', async () => {
    const job = { client: 'ours', seed: 1, seedText: '' } as const;
    const { calls } = await play(FIRST, job);
    expect((await play(FIRST, { ...job, client: 'plain' })).calls).toBe(calls);
    expect((await play(FIRST, { ...job, seed: 2 })).calls).not.toBe(calls);
    expect((await play(FIRST, { ...job, seedText: 'other' })).calls).not.toBe(calls);
  });
});

describe('the table of cases', () => {
  it('compares with the plain client only where it stays within the limit', () => {
    const span = { attempts: 100, refused: 0 };
    const records = {
      ours: {
        spans: [
          { ...span, accepted: 10 },
          { ...span, accepted: 80 },
        ],
        calls: 200,
        failed: 20,
        possible: 100,
      },
      plain: {
        spans: [
          { ...span, accepted: 99 },
          { ...span, accepted: 100 },
        ],
        calls: 200,
        failed: 0,
        possible: 200,
      },
    };
    const names = ['noise: 10 %, no limit', 'noise: 10 %, 10/s b20, load 8/s'];
    const table = writeCaseReport(
      names.flatMap((name) =>
        (['ours', 'plain'] as const).map((client) => ({
          job: { name, client, seed: 1, seedText: '' },
          record: records[client],
        })),
      ),
    );
    const cells = table.split('\n').map((line) => line.split('|').map((cell) => cell.trim()));
    expect(cells[2]?.slice(1, -1)).toEqual([names[0], '0.900', '0 %', '0 %', '80 %', '10 %', '0.995', '0 %']);
    expect(cells[3]?.[5]).toBe('–');
  });
});

function shorten(name: string): Case {
  return { ...findCase(name), durationMs: SPAN_MS };
}
