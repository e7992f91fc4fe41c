/** Cached results: each is computed once, and the cache is bounded. */
import { expect, it } from 'vitest';
import { memoize, memoizeLast } from '../../src/platform/memoize.ts';

it('computes each result once up to the bound, and each time beyond it and for long texts', () => {
  const computed: string[] = [];
  const lengths = memoize((text) => {
    computed.push(text);
    return { length: text.length };
  });
  const long = 'x'.repeat(65);
  for (let round = 0; round < 2; round++) {
    for (let index = 0; index < 1001; index++) {
      const text = `name-${String(index)}`;
      expect(lengths.known.get(text) ?? lengths.find(text)).toEqual({ length: text.length });
    }
    expect(lengths.known.get(long) ?? lengths.find(long)).toEqual({ length: 65 });
  }
  expect(computed.length).toBe(1000 + 2 + 2);
  expect(computed.filter((text) => text === 'name-1000')).toHaveLength(2);
});

it('caches the last result by the identity of its key', () => {
  let count = 0;
  const wrap = memoizeLast((key: object) => ({ key, serial: ++count }));
  const [a, b] = [{}, {}];
  expect([wrap(a), wrap(a), wrap(b), wrap(a)].map(({ serial }) => serial)).toEqual([1, 1, 2, 3]);
  expect(wrap(a).key).toBe(a);
});
