import { describe, expect, it } from 'vitest';
import { readPreferences } from '../../src/listener/request-preferences.ts';

describe('what a client asks of the sidecar', () => {
  it('is nothing special when it does not say', () => {
    const queueClass = { priority: 'normal', caller: '' };
    expect(readPreferences({ host: 'localhost' })).toEqual({ kind: 'read', timeoutMs: undefined, queueClass });
  });

  it.each([
    ['high', 'high'],
    ['normal', 'normal'],
    ['low', 'low'],
    ['LOW', 'low'],
    ['High', 'high'],
  ])('may be the priority %s', (value, priority) => {
    expect(readPreferences({ 'x-sidecar-priority': value })).toMatchObject({ queueClass: { priority, caller: '' } });
  });

  it.each(['a', 'nightly-batch', 'A', '!~', 'a,b', '__proto__', 'x'.repeat(64)])('may name the caller %s', (caller) => {
    expect(readPreferences({ 'x-sidecar-caller': caller })).toMatchObject({
      queueClass: { priority: 'normal', caller },
    });
  });

  it('may be all of it at once', () => {
    const fields = { 'x-sidecar-timeout-ms': '250', 'x-sidecar-priority': 'low', 'x-sidecar-caller': 'import' };
    const queueClass = { priority: 'low', caller: 'import' };
    expect(readPreferences(fields)).toEqual({ kind: 'read', timeoutMs: 250, queueClass });
  });

  it.each([
    ['x-sidecar-timeout-ms', ['', '0', '-1', '1.5', 'soon', '10, 10'], 'whole number of milliseconds above 0'],
    ['x-sidecar-priority', ['', 'urgent', '1', 'low, low', ' low', 'lów'], 'high, normal and low'],
    ['x-sidecar-caller', ['', 'a b', 'a, a', 'ä', '\u0080', '\t', 'x'.repeat(65)], '1 to 64 visible ASCII characters'],
  ])('is refused when %s cannot be read, with what is expected', (name, values, expected) => {
    for (const value of [...values, ['a', 'a']]) {
      const wishes = readPreferences({ [name]: value });
      expect(wishes).toEqual({ kind: 'refused', reason: expect.stringContaining(expected) as unknown });
      expect(wishes).toEqual({ kind: 'refused', reason: expect.stringContaining(name) as unknown });
    }
  });
});
