import { expect, it } from 'vitest';
import { ReplayMemory } from '../../../src/exchange/request-body/replay-body.ts';

it('resized while some is taken: that stays taken, and only the difference comes or goes', () => {
  const memory = new ReplayMemory(100);
  expect(memory.take(80)).toBe(true);
  memory.resize(50);
  expect(memory.take(1)).toBe(false);
  memory.giveBack(80);
  expect([memory.take(51), memory.take(50)]).toEqual([false, true]);
  memory.resize(60);
  expect([memory.take(11), memory.take(10)]).toEqual([false, true]);
});
