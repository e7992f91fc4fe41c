/** docs/security.md promises a test for each defence: the files and the titles in the table exist. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { DEFENCES } from './defences.ts';

const ROOT = join(import.meta.dirname, '..', '..');

it('the table has all defences', () => {
  expect(Object.keys(DEFENCES).length).toBeGreaterThan(25);
});

describe.each(Object.entries(DEFENCES))('%s', (_, tests) => {
  it('has a test', () => {
    expect(tests.length).toBeGreaterThan(0);
  });
  it.each(tests)('$file: $title', ({ file, title }) => {
    const source = readFileSync(join(ROOT, file), 'utf8');
    const literal = title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    expect(new RegExp(`\\(\\s*(['"\`])${literal}\\1,`).test(source)).toBe(true);
  });
});
