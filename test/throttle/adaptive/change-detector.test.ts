import { expect, it } from 'vitest';
import { ChangeDetector } from '../../../src/throttle/adaptive/change-detector.ts';

it('rises with every contradiction, to five', () => {
  const doubt = new ChangeDetector();
  doubt.start(0);
  const levels = Array.from({ length: 7 }, (_, count) => {
    doubt.recordContradiction(1000 * (count + 1));
    return doubt.contradictionLevel;
  });
  expect(levels).toEqual([1, 2, 3, 4, 5, 5, 5]);
});

it('takes a contradiction after a calm for a changed limit, and one soon after another not', () => {
  const doubt = new ChangeDetector();
  doubt.start(0);
  expect([
    doubt.recordContradiction(29_000),
    doubt.recordContradiction(60_000),
    doubt.recordContradiction(61_000),
  ]).toEqual([false, true, false]);
});

it('takes a contradiction after five minutes of peace for a changed limit, whatever was before', () => {
  const levelAfterPeace = (contradictions: number): number => {
    const doubt = new ChangeDetector();
    doubt.start(0);
    for (let count = 1; count <= contradictions; count++) doubt.recordContradiction(1000 * count);
    expect(doubt.recordContradiction(1_000_000)).toBe(true);
    return doubt.contradictionLevel;
  };
  expect(levelAfterPeace(5)).toBe(levelAfterPeace(1));
  expect(levelAfterPeace(5)).toBeLessThan(5);
});
