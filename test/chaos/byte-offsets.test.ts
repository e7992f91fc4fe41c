/** Broken networks, a sample of `npm run soak:chaos`: every 97th byte, each kind of fault, both sides of the sidecar. */
import { expect, it } from 'vitest';
import { runByteOffsets } from './byte-offsets.ts';

it('wherever an exchange breaks: it ends in time, no body passes falsely for complete, no POST is sent twice', async () => {
  const report = await runByteOffsets(97, 16);
  expect(report.violations).toEqual([]);
  expect(report).toMatchObject({ duplicatedPosts: 0, falselyComplete: 0 });
  expect(report.exchangeBytes).toBeGreaterThan(1900);
  expect(report.requests).toBeGreaterThan(300);
  // The faults were felt, and what could be saved was: about 28 of 100, of which a busy machine loses some to the short deadline.
  expect(Object.keys(report.outcomes)).toEqual(
    expect.arrayContaining(['responded 200', 'responded 502', 'responded 504', 'cut']),
  );
  expect(report.outcomes['responded 200']).toBeGreaterThan(report.requests / 5);
});
