import { describe, expect, it } from 'vitest';
import { readRequestHead } from '../../src/listener/request-head.ts';
import { readPreferences } from '../../src/listener/request-preferences.ts';

/** @param rawHeaders flat list [name, value, …] */
function read(...rawHeaders: string[]) {
  return readPreferences(readRequestHead(rawHeaders));
}

describe('the preferences of a client', () => {
  it('have defaults', () => {
    const queueClass = { priority: 'normal', caller: '' };
    expect(read('Host', 'localhost')).toEqual({ timeoutMs: undefined, queueClass });
  });

  it.each([
    ['high', 'high'],
    ['normal', 'normal'],
    ['low', 'low'],
    ['LOW', 'low'],
    ['High', 'high'],
  ])('have the priority %s', (value, priority) => {
    expect(read('X-Sidecar-Priority', value)).toMatchObject({ queueClass: { priority, caller: '' } });
  });

  it.each(['a', 'nightly-batch', 'A', '!~', 'a,b', '__proto__', 'x'.repeat(64)])('have the caller %s', (caller) => {
    expect(read('x-sidecar-caller', caller)).toMatchObject({ queueClass: { priority: 'normal', caller } });
  });

  it('may all be given at once', () => {
    const queueClass = { priority: 'low', caller: 'import' };
    const rawHeaders = ['x-sidecar-timeout-ms', '250', 'x-sidecar-priority', 'low', 'x-sidecar-caller', 'import'];
    expect(read(...rawHeaders)).toEqual({ timeoutMs: 250, queueClass });
  });

  it.each([
    ['x-sidecar-timeout-ms', ['', '0', '-1', '1.5', 'soon', '10, 10'], 'whole number of milliseconds above 0'],
    ['x-sidecar-priority', ['', 'urgent', '1', 'low, low', ' low', 'lów'], 'high, normal and low'],
    ['x-sidecar-caller', ['', 'a b', 'a, a', 'ä', '\u0080', '\t', 'x'.repeat(65)], '1 to 64 visible ASCII characters'],
  ])('are refused with an invalid or repeated %s, and the reason says what is expected', (name, values, expected) => {
    for (const rawHeaders of [...values.map((value) => [name, value]), [name, '1', name.toUpperCase(), '1']]) {
      const preferences = read(...rawHeaders);
      expect(preferences).toMatchObject({ code: 'BAD_REQUEST', message: expect.stringContaining(expected) as unknown });
      expect(preferences).toMatchObject({ code: 'BAD_REQUEST', message: expect.stringContaining(name) as unknown });
    }
  });
});
