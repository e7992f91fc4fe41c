/** Paths in odd spellings, and servers that read them in different ways. */
import fc from 'fast-check';
import { expect } from 'vitest';

const PIECES = ['/', 'quotes', '%71uotes', 'special', 'policies', '%2f', '%5c', '\\', '..', '%2e%2e', '.', ';x', '%3b'];
const MORE = ['%00', '%20', '%252f', '%c0%af', '%u002f', '?', '#', 'x', '%', '%zz', '%ff', '//', 'a'];
export const pathTargets = fc
  .array(fc.constantFrom(...PIECES, ...MORE), { maxLength: 9 })
  .map((parts) => `/${parts.join('')}`);

/** Readers that we did not write, or that are as plain as can be: each gives the path that it has read. */
export const READERS: readonly ((path: string) => string)[] = [
  (path) => new URL(path.replace(/^\/+/, '/'), 'http://a').pathname,
  (path) => decodeURIComponent(path),
  (path) => decodeURIComponent(new URL(path.replace(/^\/+/, '/'), 'http://a').pathname),
  (path) => decodeURIComponent(path).replaceAll(/\/+/g, '/'),
  (path) => decodeURIComponent(decodeURIComponent(path)).replaceAll(/;[^/]*/g, ''),
  (path) => path.replaceAll(/\/{2,}/g, '/'),
];
/** Undefined where the reader rejects the path. */
export function readOrNothing(read: (path: string) => string, path: string): string | undefined {
  try {
    return read(path);
  } catch (error) {
    expect(error).toBeInstanceOf(Error);
    return undefined;
  }
}
