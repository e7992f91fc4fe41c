/** Answers that are kept: each worked out once, and never more of them than the bound. */
import { expect, it } from 'vitest';
import { memoize, memoizeLast } from '../../src/platform/memoize.ts';

it('works each out once, up to a bound; beyond it and for long texts every time, and never wrongly', () => {
  const worked: string[] = [];
  const lengthOf = memoize((text) => {
    worked.push(text);
    return { length: text.length };
  });
  const long = 'x'.repeat(65);
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 1001; index++) {
      const text = `name-${String(index)}`;
      expect(lengthOf(text)).toEqual({ length: text.length });
    }
    expect(lengthOf(long)).toEqual({ length: 65 });
  }
  expect(worked.length).toBe(1000 + 2 + 2);
  expect(worked.filter((text) => text === 'name-1000')).toHaveLength(2);
});

it('keeps the last one, by identity', () => {
  let count = 0;
  const wrap = memoizeLast((key: object) => ({ key, serial: ++count }));
  const [a, b] = [{}, {}];
  expect([wrap(a), wrap(a), wrap(b), wrap(a)].map(({ serial }) => serial)).toEqual([1, 1, 2, 3]);
  expect(wrap(a).key).toBe(a);
});
