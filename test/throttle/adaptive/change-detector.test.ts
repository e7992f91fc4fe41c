import { expect, it } from 'vitest';
import { ChangeDetector } from '../../../src/throttle/adaptive/change-detector.ts';

it('raises the level with every contradiction, up to 5', () => {
  const detector = new ChangeDetector();
  detector.start(0);
  const levels = Array.from({ length: 7 }, (_, count) => {
    detector.recordContradiction(1000 * (count + 1));
    return detector.contradictionLevel;
  });
  expect(levels).toEqual([1, 2, 3, 4, 5, 5, 5]);
});

it('reports a changed limit at a contradiction after 30 stable seconds, and not at one soon after another', () => {
  const detector = new ChangeDetector();
  detector.start(0);
  expect([
    detector.recordContradiction(29_000),
    detector.recordContradiction(60_000),
    detector.recordContradiction(61_000),
  ]).toEqual([false, true, false]);
});

it('forgets earlier contradictions after five stable minutes', () => {
  const levelAfterStableTime = (contradictions: number): number => {
    const detector = new ChangeDetector();
    detector.start(0);
    for (let count = 1; count <= contradictions; count++) detector.recordContradiction(1000 * count);
    expect(detector.recordContradiction(1_000_000)).toBe(true);
    return detector.contradictionLevel;
  };
  expect(levelAfterStableTime(5)).toBe(levelAfterStableTime(1));
  expect(levelAfterStableTime(5)).toBeLessThan(5);
});
