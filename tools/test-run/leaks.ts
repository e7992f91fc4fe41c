/**
 * Searches everything that a test run printed for the secrets and tokens that it used. The tests register those in
 * <output>/secrets/ (test/support/secrets.ts); each is sought as it is, as base64 and URL-encoded.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** One line of the register. */
export interface RegisteredSecret {
  /** What it is, in words fit for a report. */
  readonly what: string;
  readonly value: string;
}

interface Leak {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

export interface LeakSearch {
  readonly secrets: number;
  readonly filesRead: number;
  readonly leaks: readonly Leak[];
}

/** @param output the folder that holds the register and everything printed */
export function findLeaks(output: string): LeakSearch {
  const secrets = readRegister(join(output, 'secrets'));
  const needles = secrets.flatMap(({ what, value }) => formsOf(value).map((form) => ({ what, form })));
  const files = globSync('**/*', { cwd: output, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.endsWith('secrets'))
    .map((entry) => join(entry.parentPath, entry.name));
  const leaks = files.flatMap((file) => {
    const text = readFileSync(file, 'latin1');
    return needles.flatMap(({ what, form }) => {
      const at = text.indexOf(Buffer.from(form, 'utf8').toString('latin1'));
      return at < 0 ? [] : [{ file, line: text.slice(0, at).split('\n').length, what }];
    });
  });
  return { secrets: secrets.length, filesRead: files.length, leaks };
}

function readRegister(folder: string): RegisteredSecret[] {
  if (!existsSync(folder)) return [];
  const lines = globSync('*.jsonl', { cwd: folder }).flatMap((file) =>
    readFileSync(join(folder, file), 'utf8').trim().split('\n'),
  );
  return [...new Set(lines)].map((line) => JSON.parse(line) as RegisteredSecret);
}

function formsOf(value: string): string[] {
  const base64 = Buffer.from(value, 'utf8').toString('base64');
  return [...new Set([value, encodeURIComponent(value), base64, encodeURIComponent(base64)])];
}
