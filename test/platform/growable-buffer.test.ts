import { expect, it } from 'vitest';
import { GrowableBuffer } from '../../src/platform/growable-buffer.ts';

it('takes memory for what comes and not for what is announced, and never twice what is announced', () => {
  const store = new GrowableBuffer(1_000_000);
  const sizes = [10, 10, 70_000, 100_000].map((bytes) => {
    store.append(Buffer.alloc(bytes));
    return store.capacity;
  });
  expect(sizes).toEqual([10, 65_536, 131_072, 262_144]);
});

it('takes the memory that was announced once, and more only when more comes', () => {
  const store = new GrowableBuffer(100);
  const sizes = [40, 40, 20, 1].map((bytes) => {
    store.append(Buffer.alloc(bytes, bytes));
    return store.bytes.buffer.byteLength;
  });
  // The first piece is kept as it came, in memory of the one that made it.
  expect(sizes.slice(1)).toEqual([100, 100, 200]);
  const expected = Buffer.concat([40, 40, 20, 1].map((bytes) => Buffer.alloc(bytes, bytes)));
  expect(store.bytes.equals(expected)).toBe(true);
});
