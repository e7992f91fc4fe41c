import { expect, it } from 'vitest';
import { ReplayMemory } from '../../../src/exchange/request-body/replay-body.ts';

it('resized while some is taken: that stays taken, and only the difference comes or goes', () => {
  const memory = new ReplayMemory(100);
  expect(memory.tryTake(80)).toBe(true);
  memory.resize(50);
  expect(memory.tryTake(1)).toBe(false);
  memory.giveBack(80);
  expect([memory.tryTake(51), memory.tryTake(50)]).toEqual([false, true]);
  memory.resize(60);
  expect([memory.tryTake(11), memory.tryTake(10)]).toEqual([false, true]);
});
