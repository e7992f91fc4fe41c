/** The counts of `npm run size`: lines by kind, and the functions that only pass their parameters on. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countFile, countFolders } from '../../tools/size/count.ts';

const BUCKET = `/**
 * A bucket of permits.
 *
 * It holds up to the burst.
 */
import type { Clock } from './clock.ts'; // of the platform

/** What the bucket needs. */
export interface BucketOptions {
  /** Permits. */
  readonly burst: number;

  readonly clock: Clock;
}
type Kind = 'empty' | 'full';

export function describeBucket(kind: Kind): string {
  /* One line of code: */ const text = \`bucket:

\${kind}\`;
  return text;
}
`;

it('counts each line once, as code, types, comments or blank', () => {
  const { code, types, comments, blank, lines } = countFile(BUCKET);
  // The blank line of the template is code; that of the interface is blank.
  expect({ code, types, comments, blank }).toEqual({ code: 7, types: 5, comments: 7, blank: 3 });
  expect(lines).toBe(22);
});

it('counts a declaration of a type within a function as types', () => {
  expect(countFile('function run() {\n  type Local = string;\n  return 1;\n}')).toMatchObject({ code: 3, types: 1 });
});

it('counts no lines of an empty file', () => {
  expect(countFile('')).toMatchObject({ files: 1, lines: 0, code: 0, blank: 0 });
});

describe('a pass-through', () => {
  it.each([
    'function close(reason: string): void { pool.close(reason); }',
    'class Gate { readonly #bucket = bucket; take(now: number) { return this.#bucket.take(now); } }',
    'class Gate { async read(...names: string[]) { return await this.source.read(...names); } }',
    'class Gate { readonly stop = () => this.timer.stop(); }',
    'const evaluate = (sample: Sample) => rules.evaluate(sample);',
    'const gate = { take: (now: number) => bucket.take(now) };',
    'const gate = { take(now: number) { return bucket.take(now); } };',
  ])('is %s', (text) => {
    expect(countFile(text).passThrough).toBe(1);
  });

  it.each([
    'function close(): void { pool.close(0); }',
    'function take(now: number) { return bucket.take(now, 1); }',
    'function swap(a: number, b: number) { return subtract(b, a); }',
    'function first(path: string) { return read(path).at(0); }',
    'function count(path: string) { return read(path) + 1; }',
    'function run(now: number) { start(now); stop(now); }',
    'function read() { return open().read(); }',
    'function nothing(): void {}',
    'list.map((each) => run(each));',
    'interface Gate { take(now: number): boolean }',
  ])('is not %s', (text) => {
    expect(countFile(text).passThrough).toBe(0);
  });
});

it('sums the files of each folder of src, and those of src itself', () => {
  const root = mkdtempSync(join(tmpdir(), 'size-test-'));
  for (const [path, text] of [
    ['src/main.ts', 'run();\n'],
    ['src/queue/heap.ts', 'run();\n\n// end\n'],
    ['src/queue/order/fair.ts', 'run();\n'],
    ['src/queue/page.css', 'body {}\n'],
  ] as const) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  const folders = countFolders(root);
  expect([...folders.keys()].sort()).toEqual(['queue', 'src']);
  expect(folders.get('queue')).toMatchObject({ files: 2, lines: 4, code: 2, comments: 1, blank: 1 });
  expect(folders.get('src')).toMatchObject({ files: 1, lines: 1, code: 1 });
});
