/** SECURITY.md promises a test for each defence: the files and the titles that it names exist. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');

interface NamedTest {
  readonly file: string;
  readonly title: string;
}

/** Rows of the threat tables, by threat. */
function readThreats(): Map<string, NamedTest[]> {
  const lines = readFileSync(join(ROOT, 'SECURITY.md'), 'utf8').split('\n');
  const rows = lines
    .filter((line) => /^\| (?!threat|-)/.test(line))
    .map((line) => line.split('|').map((cell) => cell.trim()));
  return new Map(rows.map(([, threat = '', , tests = '']) => [threat, readTests(tests)]));
}

function readTests(cell: string): NamedTest[] {
  return [...cell.matchAll(/`(test\/[\w/.-]+\.test\.ts)` "([^"]+)"/g)].map(([, file = '', title = '']) => ({
    file,
    title,
  }));
}

const THREATS = readThreats();

it('the tables are read', () => {
  expect(THREATS.size).toBeGreaterThan(25);
});

describe.each([...THREATS])('%s', (_, tests) => {
  it('has a test', () => {
    expect(tests.length).toBeGreaterThan(0);
  });
  it.each(tests)('$file: $title', ({ file, title }) => {
    const source = readFileSync(join(ROOT, file), 'utf8');
    const literal = title.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
    expect(new RegExp(`\\(\\s*(['"\`])${literal}\\1,`).test(source)).toBe(true);
  });
});
